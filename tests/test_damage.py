"""Foreign code and edited files: what is not as its wheel has it never passes for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit.check import ended, errors
from kit.cli import Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

SIX = Wheel(name="six", version="1.0.0")
LIAR = Wheel(name="liar", version="1.0.0", record="wrong")
REMOVE = "import shutil, six, os; shutil.rmtree(os.path.dirname(six.__file__))"
REWRITE = "import six, os; p = six.__file__; t = open(p).read(); os.unlink(p); open(p, 'w').write(t + 'evil = 1\\n')"
STEP = {"name": "six", "install": ["six"]}


def write(cli: Cli, server: Server, steps: list[Any], **more: Any) -> None:
    cli.profile(server.url("pypi"), steps, **more)


@pytest.mark.parametrize("shared", ["auto", pytest.param("copy", marks=pytest.mark.slow)])
def test_an_edited_file_does_not_come_with_the_next_environment(tmp_path: Path, shared: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path, variables={"ENVFORGE_LINK_MODE": shared})
        write(cli, server, [STEP])
        ended(cli.run("create", "demo"), 0)
        with (cli.site() / "six/__init__.py").open("a") as file:
            file.write("evil = 1\n")
        answer = ended(cli.run("create", "demo", "--name", "next"), 0)
        assert "evil" not in (cli.site("next") / "six/__init__.py").read_text()
        linked = (cli.site() / "six/__init__.py").stat().st_nlink > 1
        assert not linked or shared == "copy" or "damaged copy of `six`" in answer.stderr
        server.forget()
        ended(cli.run("create", "demo", "--name", "third"), 0)
        assert not server.requests("file"), "what was fetched anew is believed from then on"


def test_a_wheel_whose_record_lies_is_installed_and_seen_through(tmp_path: Path) -> None:
    """The bytes are those of the wheel, whose hash is right: they are the reference, not its RECORD."""
    with serve({"pypi": Index(artefacts=[LIAR])}) as server:
        cli = Cli(root=tmp_path)
        write(cli, server, [{"name": "liar", "install": ["liar"]}])
        for name in ("first", "second"):
            answer = ended(cli.run("create", "demo", "--name", name), 0)
            assert "damaged" not in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("code", "finding"), [(REMOVE, "file-missing"), (REWRITE, "file-modified")])
def test_a_run_step_may_not_spoil_what_is_installed(tmp_path: Path, code: str, finding: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        write(cli, server, [STEP, {"name": "spoil", "run": ["python", "-c", code]}])
        assert (finding, "six") in errors(ended(cli.run("create", "demo"), 3))
        assert not cli.link().exists()
        ignore = [{"id": finding, "subject": "six", "because": "it is patched on purpose"}]
        write(cli, server, [STEP, {"name": "spoil", "run": ["python", "-c", code]}], ignore=ignore)
        ended(cli.run("create", "demo"), 0)


def test_a_smoke_check_may_not_spoil_what_it_proves(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        write(cli, server, [STEP], smoke=[{"python": REMOVE}])
        assert ("file-missing", "six") in errors(ended(cli.run("create", "demo"), 3))
        assert not cli.link().exists()


def test_a_run_step_that_puts_another_build_in_place_violates_keep(tmp_path: Path) -> None:
    other = Wheel(name="six", version="1.0.0", files={"six/other.py": "x = 1\n"})
    with serve({"pypi": Index(artefacts=[SIX]), "other": Index(artefacts=[other])}) as server:
        cli = Cli(root=tmp_path)
        install = [
            "python",
            "-m",
            "pip",
            "install",
            "-q",
            "--force-reinstall",
            "--no-deps",
            "--index-url",
            server.url("other"),
            "six",
        ]
        write(cli, server, [STEP, {"name": "other", "run": install}], guards=[{"keep": ["six"]}])
        answer = ended(cli.run("create", "demo"), 3)
        assert ("kept-package-changed", "six") in errors(answer)


@pytest.mark.slow
def test_a_folder_of_the_user_s_is_not_what_pip_or_a_check_runs(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        for name in ("pip", "ghost"):
            (cli.work / name).mkdir()
            (cli.work / name / "__init__.py").write_text("")
            (cli.work / name / "__main__.py").write_text("raise SystemExit(0)\n")
        write(cli, server, [STEP])
        ended(cli.run("create", "demo", "--engine", "pip"), 0)
        assert cli.installed() == {"six": "1.0.0"}
        write(cli, server, [STEP], smoke=[{"import": ["ghost"]}])
        assert ("smoke-failed", "import ghost") in errors(ended(cli.run("create", "demo", "--replace"), 3))
