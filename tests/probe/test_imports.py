from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from kit.wheels import Wheel

from envforge.model.imports import Imports
from envforge.probe import imports, imports_worker
from envforge.probe.imports import Read
from envforge.system import process

from .conftest import Install


def kinds(text: str) -> dict[str, str]:
    """Module -> kind, of what a file imports."""
    return {item.module: item.kind for item in imports_worker.imports(dedent(text).encode())}


def look(venv: Path, folder: Path) -> dict[str, Read]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return dict(imports.read(venv, imports.sources(venv), folder))


def told(found: Imports) -> dict[str, tuple[str, str]]:
    return {each.module: (each.kind.value, f"{each.path}:{each.line}") for each in found.imports}


# -- one file ----------------------------------------------------------------------------------------------------------


def test_what_runs_whenever_a_file_is_imported_is_told_from_what_may_never_run() -> None:
    assert kinds("""
        import plain
        class Inside:
            import of_class
        def function():
            import lazy
            async def deeper():
                from lazier import name
        with open(1):
            import in_with
        for each in ():
            import in_loop
        match 1:
            case 1:
                import in_case
    """) == {
        "plain": "module", "of_class": "module", "lazy": "lazy", "lazier": "lazy", "in_with": "module",
        "in_loop": "guarded", "in_case": "guarded",
    }  # fmt: skip


@pytest.mark.parametrize(
    "caught", ["ImportError", "ModuleNotFoundError", "(OSError, ImportError)", "Exception", "builtins.ImportError", ""]
)
def test_a_failure_that_is_caught_is_a_guard(caught: str) -> None:
    assert kinds(f"""
        try:
            import fast
        except {caught}:
            import slow
        else:
            import with_fast
        finally:
            import always
    """) == {"fast": "guarded", "slow": "guarded", "with_fast": "guarded", "always": "module"}


def test_a_failure_that_is_raised_again_or_not_caught_is_none() -> None:
    assert kinds("""
        try:
            import needed
        except ImportError as error:
            raise ImportError("install needed") from error
        try:
            import sure
        except ValueError:
            pass
        try:
            import grouped
        except* ImportError:
            pass
        with contextlib.suppress(ImportError):
            import suppressed
    """) == {"needed": "module", "sure": "module", "grouped": "guarded", "suppressed": "guarded"}


def test_a_condition_is_a_guard_unless_it_is_of_types_the_platform_or_the_main_program() -> None:
    assert kinds("""
        if typing.TYPE_CHECKING and True:
            import of_types
        else:
            import at_run_time
        if not TYPE_CHECKING or x:
            import not_of_types
        if sys.platform == "win32":
            import winapi
        elif os.name != "nt":
            import posixy
        if sys.platform.startswith("darwin") or platform.system() == "Windows":
            import elsewhere
        if __name__ == "__main__":
            import of_main
        if importlib.util.find_spec("maybe"):
            import maybe
        if sys.version_info >= (3, 11):
            import new
        else:
            import old
    """) == {
        "at_run_time": "module", "not_of_types": "module", "posixy": "module",
        "maybe": "guarded", "new": "guarded", "old": "guarded",
    }  # fmt: skip


def test_of_a_very_large_file_the_plain_imports_are_read() -> None:
    text = "import one\nfrom two import (\n  a,\n  b)\nX = '" + "x" * (1 << 19) + "'\nif X:\n    import three\n"
    found = imports_worker.imports(text.encode())
    assert [(item.module, item.line) for item in found] == [("one", 1), ("two", 2)]
    # Where its lines cannot be made out, all of it is read.
    odd = imports_worker.imports(("from four import \\\n  a\n" + text).encode())
    assert [(item.module, item.line) for item in odd] == [("four", 1), ("one", 3), ("two", 4), ("three", 9)]


# -- distributions -----------------------------------------------------------------------------------------------------

PLAIN = {
    "app/__init__.py": "import os\nfrom . import core\nfrom app.sub import thing\nimport numpy.linalg as la\n",
    "app/core.py": "from __future__ import annotations\nimport yaml, app.deep.down\n",
    "app/deep/__init__.py": "from ..other import x\n",
    "app/deep/down.py": "import down_there\n",
    "app/other.py": "import other_there\ntry:\n    from . import fast\nexcept ImportError:\n    pass\n",
    "app/fast.py": "import only_fast\nimport yaml\n",
    "app/sub/__init__.py": "def f():\n    import in_function\n",
    "app/alone.py": "import alone_there\nimport numpy\n",
    "app/tests/test_it.py": "import pytest_there\n",
    "app/templates/{{name}}.py": "import template_there\n",
    "examples/demo.py": "import example_there\n",
}


def test_what_importing_the_package_reaches_is_told_from_the_rest(venv: Path, install: Install, tmp_path: Path) -> None:
    install(venv, Wheel(name="app", version="1.0", files=PLAIN))
    found = look(venv, tmp_path / "work")["app"]
    assert told(found.imports) == {
        "numpy.linalg": ("reached", "app/__init__.py:4"),
        "yaml": ("reached", "app/core.py:2"),
        "down_there": ("reached", "app/deep/down.py:1"),
        "other_there": ("reached", "app/other.py:1"),
        "only_fast": ("module", "app/fast.py:1"),
        "alone_there": ("module", "app/alone.py:1"),
        "numpy": ("module", "app/alone.py:2"),
        "in_function": ("lazy", "app/sub/__init__.py:2"),
    }
    assert (found.imports.provides, found.imports.unread, found.lasting) == (("app",), (), True)


def test_what_stands_beside_the_package_is_not_the_package(venv: Path, install: Install, tmp_path: Path) -> None:
    install(
        venv,
        Wheel(name="ink", version="1.0", files={"inkd/__init__.py": "import aiohttp\n"}),
        Wheel(
            name="Hub-Plugin",
            version="1.0",
            files={"hub_plugin/__init__.py": "", "hub/plugins/own.py": "import hub_there\n", "_hidden.py": "import h"},
        ),
        Wheel(name="python-Date", version="1.0", files={"date/__init__.py": "import six\n"}),
    )
    found = look(venv, tmp_path / "work")
    assert told(found["ink"].imports)["aiohttp"][0] == "module"
    assert {each.kind.value for each in found["hub-plugin"].imports.imports} == {"module"}
    assert told(found["python-date"].imports) == {"six": ("reached", "date/__init__.py:1")}


def test_what_is_vendored_or_lies_beside_is_no_import_from_elsewhere(
    venv: Path, install: Install, tmp_path: Path
) -> None:
    files = {
        "app/__init__.py": "import six\nimport redis\n",
        "app/_vendor/six.py": "",
        "app/redis.py": "import redis\n",
        "app/scripts_of/run.py": "import helper\nimport redis\n",
        "app/scripts_of/helper.py": "",
    }
    install(venv, Wheel(name="app", version="1.0", files=files))
    assert told(look(venv, tmp_path / "work")["app"].imports) == {"redis": ("reached", "app/__init__.py:2")}


def test_a_namespace_is_shared_and_its_parts_are_owned(venv: Path, install: Install, tmp_path: Path) -> None:
    old = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    install(
        venv,
        Wheel(name="cloud-one", version="1.0", files={"cloud/one/__init__.py": "from cloud import two, three\n"}),
        Wheel(name="cloud-two", version="1.0", files={"cloud/two.cpython-311-x86_64-linux-gnu.so": ""}),
        Wheel(
            name="old-style", version="1.0", files={"old/__init__.py": old, "old/style.py": "import cloud.one.x.y\n"}
        ),
    )
    found = look(venv, tmp_path / "work")
    assert {name: found[name].imports.provides for name in ("cloud-one", "cloud-two", "old-style")} == {
        "cloud-one": ("cloud.one", "cloud_one"),
        "cloud-two": ("cloud.two", "cloud_two"),
        "old-style": ("old.style", "old_style"),
    }
    assert set(told(found["cloud-one"].imports)) == {"cloud.two", "cloud.three"}
    assert set(told(found["old-style"].imports)) == {"cloud.one.x"}


def test_what_is_compiled_is_imported_before_what_it_was_made_of(venv: Path, install: Install, tmp_path: Path) -> None:
    files = {"av/__init__.py": "from . import core\n", "av/core.py": "import cython\n", "av/core.abi3.so": ""}
    install(venv, Wheel(name="av", version="1.0", files=files))
    assert told(look(venv, tmp_path / "work")["av"].imports) == {}


def test_an_editable_installation_provides_what_lies_elsewhere(
    venv: Path, site: Path, install: Install, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "far").mkdir(parents=True)
    (source / "single.py").touch()
    finder = "from typing import Any\nMAPPING: dict[str, str] = {'mapped': '/somewhere/mapped'}\nNAMESPACES = {}\n"
    install(
        venv,
        Wheel(name="far", version="1.0", files={"far.pth": f"# a remark\nimport os\n{source}\n/\0\n"}),
        Wheel(name="mapped", version="1.0", files={"__editable___mapped_1_0_finder.py": finder}),
        Wheel(name="broken", version="1.0", files={"__editable___broken_1_0_finder.py": "MAPPING = {1: f()}\n"}),
    )
    found = look(venv, tmp_path / "work")
    assert {"far", "single"} <= set(found["far"].imports.provides)
    assert "mapped" in found["mapped"].imports.provides
    assert (found["far"].lasting, found["mapped"].lasting) == (False, False)
    assert imports.present(venv) >= {"far", "mapped", "broken"}


def test_folders_that_a_pth_adds_are_imported_from(venv: Path, install: Install, tmp_path: Path) -> None:
    code = "import sys, os, dsl; sys.path.insert(0, os.path.join(dsl.__path__[0], 'dsl_packages'))\n"
    install(
        venv,
        Wheel(name="dsl", version="1.0", files={"dsl.pth": f"{code}import of_nothing, 'not_added'\n"}),
        Wheel(
            name="dsl-libs",
            version="1.0",
            files={
                "dsl/dsl_packages/cutlass/__init__.py": "import six, cutlass.deep\n",
                "dsl/dsl_packages/cutlass/deep.py": "import deep_there\n",
                "win/not_added/x.py": "",
            },
        ),
        Wheel(
            name="win",
            version="1.0",
            files={"win.pth": "# all of it\nwin/lib\n\n", "win/lib/winapi.py": "import six\n"},
        ),
    )
    found = look(venv, tmp_path / "work")
    assert found["dsl-libs"].imports.provides == ("cutlass", "dsl_libs", "win.not_added.x")
    assert {module: kind for module, (kind, _) in told(found["dsl-libs"].imports).items()} == {
        "six": "module",
        "deep_there": "module",
    }
    assert found["win"].imports.provides == ("win", "winapi")
    assert (found["dsl-libs"].lasting, found["win"].lasting) == (True, True)


def test_what_is_no_python_is_told_and_nothing_else_is_lost(venv: Path, install: Install, tmp_path: Path) -> None:
    files = {
        "app/__init__.py": "import os\nfrom app import broken, zeros, deep, latin, good\n",
        "app/broken.py": "import x\nprint 1\n",
        "app/zeros.py": "import x\0\n",
        "app/deep.py": "import x\ny = " + "(" * 500 + ")" * 500 + "\n",
        "app/latin.py": "# coding: latin-1\nimport latin_there  # \u00fc\n",
        "app/good.py": "import good_there\n",
    }
    install(venv, Wheel(name="app", version="1.0", files=files))
    found = look(venv, tmp_path / "work")["app"]
    assert set(told(found.imports)) == {"latin_there", "good_there"}
    assert found.imports.unread == ("app/broken.py", "app/deep.py", "app/zeros.py")
    assert found.lasting


def test_what_was_changed_is_read_and_not_kept_and_a_pipe_keeps_nobody_waiting(
    venv: Path, site: Path, install: Install, tmp_path: Path
) -> None:
    install(venv, Wheel(name="app", version="1.0", files={"app/__init__.py": "from app import gone, pipe, link\n"}))
    files = {"app/__init__.py": "import six\n", "app/gone.py": "", "app/pipe.py": "", "app/link.py": "import six\n"}
    install(venv, Wheel(name="other", version="1.0", files={f"other/{name[4:]}": text for name, text in files.items()}))
    (before,) = (each for each in imports.sources(venv) if each.name == "app")
    (site / "app" / "__init__.py").write_text("import changed\n", encoding="utf-8")
    (site / "other" / "gone.py").unlink()
    (site / "other" / "pipe.py").unlink()
    subprocess.run(["mkfifo", site / "other" / "pipe.py"], check=True)
    (site / "other" / "link.py").unlink()
    (site / "other" / "link.py").symlink_to("/etc/passwd")
    found = look(venv, tmp_path / "work")
    assert set(told(found["app"].imports)) == {"changed"}
    assert not found["app"].lasting
    assert found["other"].imports.unread == ("other/gone.py", "other/link.py", "other/pipe.py")
    assert not found["other"].lasting
    (after,) = (each for each in imports.sources(venv) if each.name == "app")
    assert before.digest == after.digest  # of what RECORD says; a file that was changed is the audit's to tell


def test_a_digest_is_of_the_code_alone(venv: Path, install: Install) -> None:
    def digest() -> str | None:
        (found,) = (each for each in imports.sources(venv) if each.name == "app")
        return found.digest

    wheel = Wheel(name="app", version="1.0", files={"app/__init__.py": "import six\n"}, scripts={"app": "app:main"})
    install(venv, wheel)
    first = digest()
    install(venv, Wheel(name="app", version="2.0", files={"app/__init__.py": "import six\n", "app/data.txt": "x"}))
    assert first is not None
    assert digest() == first
    install(venv, Wheel(name="app", version="3.0", files={"app/__init__.py": "import seven\n"}))
    assert digest() not in {first, None}


def test_a_worker_that_crashes_loses_only_what_it_was_at(
    venv: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = process.run

    def crashing(argv: Sequence[str], **options: Any) -> process.Completed:
        request = Path(argv[-1])
        data = json.loads(request.read_text(encoding="utf-8"))
        pending = [each["name"] for each in data["distributions"]]
        if "crash" not in pending:
            return run(argv, **options)
        data["distributions"] = data["distributions"][: pending.index("crash")]
        request.write_text(json.dumps(data), encoding="utf-8")
        run(argv, **options)
        with Path(data["out"]).open("a", encoding="utf-8") as out:
            out.write('{"name": "cra\n')
        return process.Completed(argv=tuple(argv), status=None, signal="SIGSEGV")

    names = ("before", "crash", "later")
    install(venv, *(Wheel(name=name, version="1.0", files={f"{name}/__init__.py": "import six\n"}) for name in names))
    monkeypatch.setattr(process, "run", crashing)
    found = look(venv, tmp_path / "work")
    assert [set(told(found[name].imports)) for name in names] == [{"six"}, set(), {"six"}]
    assert found["crash"].imports.unread == ("crash/__init__.py",)
    assert (found["before"].lasting, found["crash"].lasting) == (True, False)


def test_an_interrupt_ends_the_workers_and_starts_no_others(
    venv: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(venv, *(Wheel(name=name, version="1.0") for name in ("one", "two")))
    sources = imports.sources(venv)
    began, ended = list[str](), threading.Event()

    def endless(argv: Sequence[str], **options: Any) -> process.Completed:
        began.append(argv[-1])
        if len(began) == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert ended.wait(60)
        return process.Completed(argv=tuple(argv), status=None, signal="SIGKILL")

    monkeypatch.setattr(process, "run", endless)
    monkeypatch.setattr(process, "end_all", ended.set)
    with pytest.raises(KeyboardInterrupt):
        imports.read(venv, sources, tmp_path)
    assert ended.is_set()
    assert len(began) == len(set(began))


def test_of_what_conda_brought_conda_meta_says_what_is_its_own(tmp_path: Path) -> None:
    site = "lib/python3.10/site-packages"
    texts = {
        f"{site}/app/__init__.py": "import six\n",
        f"{site}/app-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: app\nVersion: 1.0\n",
        f"{site}/app-1.0.dist-info/INSTALLER": "conda\n",
        f"{site}/app-1.0.dist-info/RECORD": "elsewhere/__init__.py,,\n",
    }
    for path, text in texts.items():
        (tmp_path / "venv" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "venv" / path).write_text(text, encoding="utf-8")
    hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
    paths = [{"_path": path, "path_type": "hardlink", "sha256": sha256} for path, sha256 in hashes.items()]
    meta = {"name": "app", "version": "1.0", "build": "0", "paths_data": {"paths": paths}}
    (tmp_path / "venv" / "conda-meta").mkdir()
    (tmp_path / "venv" / "conda-meta" / "app-1.0-0.json").write_text(json.dumps(meta), encoding="utf-8")
    found = look(tmp_path / "venv", tmp_path / "work")["app"]
    assert (told(found.imports), found.imports.provides) == ({"six": ("reached", "app/__init__.py:1")}, ("app",))
    assert found.lasting
