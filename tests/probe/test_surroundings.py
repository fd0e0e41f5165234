from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.wheels import Wheel
from probe.conftest import Install

from envforge.model.drift import Surroundings
from envforge.probe import prefix
from envforge.probe.surroundings import look

Look = Callable[[], Surroundings]
USED = ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "all_proxy")


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty home, and none of the variables that the tests set."""
    for name in USED:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def again(venv: Path, install: Install) -> Look:
    """Looks at an environment with one distribution, whose files are known."""
    install(venv, Wheel(name="tiny", version="1", files={"single.py": "", "folder/data.txt": ""}))
    known = [row.path for row in prefix.look(venv).files]
    return lambda: look(venv, known)


def user_site(home: Path, site: Path, *names: str) -> Path:
    folder = home / ".local" / "lib" / site.parent.name / "site-packages"
    for name in names:
        (folder / f"{name}-1.dist-info").mkdir(parents=True)
    return folder


def test_a_fresh_environment_has_nothing_of_the_kind(again: Look) -> None:
    found = again()
    assert (found.system_site, found.user_site, found.shadowed, found.unowned) == (False, None, (), ())
    assert (found.pythonpath, dict(found.libraries), found.proxies) == ((), {}, ())


def test_the_user_site_counts_only_where_python_looks(
    again: Look, venv: Path, site: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = user_site(host, site, "Tiny", "more")
    assert again().user_site is None
    settings = venv / "pyvenv.cfg"
    text = settings.read_text()
    settings.write_text(text.replace("include-system-site-packages = false", "Include-System-Site-Packages = TRUE"))
    found = again()
    assert (found.system_site, found.user_site, found.shadowed) == (True, str(folder), ("tiny",))
    said = subprocess.run(
        [venv / "bin" / "python", "-c", "import sys; print(sys.path)"], check=True, capture_output=True, text=True
    )
    assert str(folder) in said.stdout
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert again().user_site is None


@pytest.mark.parametrize(
    ("lines", "visible"),
    [
        ("", True),
        ("include-system-site-packages = true\ninclude-system-site-packages = false\n", False),
        ("include-system-site-packages = false\ninclude-system-site-packages = true\n", True),
        ("include-system-site-packages = yes\n", False),
    ],
)
def test_pyvenv_cfg_is_read_as_python_reads_it(venv: Path, lines: str, *, visible: bool) -> None:
    settings = venv / "pyvenv.cfg"
    kept = [line for line in settings.read_text().splitlines() if not line.startswith("include-")]
    settings.write_text("\n".join(kept) + "\n" + lines)
    assert look(venv, ()).system_site is visible
    question = "import site, sys; print(len(site.PREFIXES) > 1)"
    said = subprocess.run([venv / "bin" / "python", "-c", question], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == str(visible)


def test_without_pyvenv_cfg_the_user_site_is_looked_at(again: Look, venv: Path, site: Path, host: Path) -> None:
    folder = user_site(host, site, "more")
    (venv / "pyvenv.cfg").unlink()
    found = again()
    assert (found.system_site, found.user_site, found.shadowed) == (False, str(folder), ())


def test_variables_that_lead_python_and_the_linker_elsewhere(again: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/one::/two")
    monkeypatch.setenv("LD_PRELOAD", "/lib/x.so")
    monkeypatch.setenv("all_proxy", "socks://user:secret@127.0.0.1:1")
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    found = again()
    assert found.pythonpath == ("/one", "/two")
    assert found.libraries == {"LD_PRELOAD": "/lib/x.so"}
    assert found.proxies == ("all_proxy",)
    sources = {item.source for item in found.ambient}
    assert "$PYTHONOPTIMIZE" in sources
    assert not sources & {"$PYTHONPATH", "$LD_PRELOAD", "$all_proxy"}
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    "name", ["x.pth", "sitecustomize.py", "usercustomize/__init__.py", "tiny.py", "tiny.abi3.so", "single/__init__.py"]
)
def test_code_that_runs_by_itself_and_nobody_owns(again: Look, venv: Path, site: Path, name: str) -> None:
    path = site / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    place = site.relative_to(venv).as_posix()
    assert again().unowned == (f"{place}/{name.partition('/')[0]}",)


@pytest.mark.parametrize("name", ["notes.txt", "mine.py", "single.txt", "tiny/more.py", "__pycache__/tiny.pyc"])
def test_what_shadows_nothing_is_left_alone(again: Look, site: Path, name: str) -> None:
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).touch()
    assert again().unowned == ()


def test_a_module_beside_the_scripts_shadows_what_they_import(again: Look, venv: Path) -> None:
    for name in ("tiny.py", "random.py", "mine.py", "tiny"):
        (venv / "bin" / name).touch()
    assert again().unowned == ("bin/random.py", "bin/tiny.py")


@pytest.mark.parametrize("name", ["pyvenv.cfg", "python._pth", "python3.11._pth"])
def test_what_python_reads_beside_itself(again: Look, venv: Path, name: str) -> None:
    (venv / "bin" / name).write_text("")
    assert again().unowned == (f"bin/{name}",)


def test_nothing_is_raised_for_a_prefix_that_is_broken(tmp_path: Path) -> None:
    assert look(tmp_path / "absent", ()).unowned == ()
    broken = tmp_path / "broken"
    (broken / "lib" / "python3.11").mkdir(parents=True)
    (broken / "pyvenv.cfg").mkdir()
    (broken / "lib" / "python3.11" / "site-packages").symlink_to("/")
    assert look(broken, ()).unowned == ()
