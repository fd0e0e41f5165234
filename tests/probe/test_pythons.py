from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envforge.model.errors import EnvforgeError, UsageError
from envforge.probe import interpreter, places, pythons
from envforge.system import process

BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a PATH without any Python."""
    for name in ("ENVFORGE_PYTHON", "PYENV_ROOT", "CONDA_EXE", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def a_python(path: Path, version: str, *, then: str = "") -> Path:
    """A stand-in that answers as a Python of that version would; a script, so only ENVFORGE_PYTHON may name it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = (
        f'{{"version": "{version}", "base": "{path}", "implementation": "cpython", "abiflags": "", '
        f'"free_threaded": false, "glibc": null, "pip_wheel": null, "markers": {{}}}}'
    )
    path.write_text(f"#!/bin/sh\n{then}\necho '{answer}'\n")
    path.chmod(0o755)
    return path


def test_the_python_that_runs_envforge_is_found_outside_its_venv() -> None:
    found = pythons.find(MINOR)
    assert not (Path(found.path).parent.parent / "pyvenv.cfg").exists()
    assert found.version.startswith(f"{MINOR}.")


def test_the_running_one_is_preferred_and_not_run(bare_host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*words: object, **options: object) -> None:
        raise AssertionError(words)

    monkeypatch.setattr(process, "run", never)
    for wish in (MINOR, f">={MINOR}", ".".join(map(str, sys.version_info[:3]))):
        found = pythons.find(wish)
        assert (found.path, found.how) == (BASE, "envforge")


def test_everything_holds_each_once_and_no_venv(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}")
    paths = [python.path for python in pythons.everything()]
    assert BASE in paths
    assert len(paths) == len(set(paths))
    assert not [path for path in paths if path.startswith(str(venv))]


def test_envforge_python_comes_first(bare_host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = a_python(bare_host / "mine", f"{MINOR}.99")
    monkeypatch.setenv("ENVFORGE_PYTHON", str(mine))
    assert pythons.find(MINOR).path == str(mine)
    assert pythons.find(MINOR).how == "ENVFORGE_PYTHON"
    assert pythons.find(".".join(map(str, sys.version_info[:3]))).path == BASE


def test_one_that_is_not_there_is_told_with_what_was_looked_at(
    bare_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVFORGE_PYTHON", str(bare_host / "gone"))
    with pytest.raises(EnvforgeError, match=r"3\.99") as caught:
        pythons.find("3.99")
    error = caught.value
    assert error.code == "python-not-found"
    assert error.cause is not None
    assert BASE in error.cause
    assert "gone" in error.cause
    assert error.hint is not None
    for way in ("uv python install", "apt install python3.99", "conda create", "ENVFORGE_PYTHON"):
        assert way in error.hint


@pytest.mark.parametrize("wish", ["", "three", "3.x", ">=", "py310"])
def test_a_wish_that_is_no_version_is_exit_2(wish: str) -> None:
    with pytest.raises(UsageError) as caught:
        pythons.find(wish)
    assert caught.value.code == "invalid-python"


def test_only_what_may_fit_is_run(bare_host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = bare_host / ".pyenv" / "versions"
    for version in ("3.5.1", "3.6.2"):
        (versions / version / "bin").mkdir(parents=True)
        program = versions / version / "bin" / "python3"
        program.write_bytes(b"\x7fELF")
        program.chmod(0o755)
    asked: list[str] = []

    def ask(path: str) -> dict[str, object]:
        asked.append(path)
        version = Path(path).parent.parent.name
        return {"version": version, "base": path, "free_threaded": False, "implementation": "cpython"}

    monkeypatch.setattr(interpreter, "ask", ask)
    assert pythons.find("3.6").version == "3.6.2"
    assert asked == [str(versions / "3.6.2" / "bin" / "python3")]
    assert pythons.find("<3.6").version == "3.5.1"


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        ("/usr/bin/python3.10", (3, 10)),
        ("/usr/bin/python3", ()),
        ("/home/u/.pyenv/versions/3.10.13/bin/python3.10", (3, 10, 13)),
        ("/home/u/.local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/bin/python3.12", (3, 12, 1)),
        ("/opt/3.8/bin/python3.12", (3, 12)),
    ],
)
def test_what_a_path_tells(path: str, guess: tuple[int, ...]) -> None:
    assert places._guess(path) == guess


def test_shims_are_no_pythons(bare_host: Path) -> None:
    a_python(bare_host / "bin" / "python3.9", "3.9.1")
    assert not [candidate for candidate in places.candidates() if candidate.path.startswith(str(bare_host))]


def test_facts_of_this_python() -> None:
    facts = interpreter.facts(BASE)
    assert facts.version == ".".join(map(str, sys.version_info[:3]))
    assert facts.abi == f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert facts.markers["python_version"] == MINOR
    assert facts.markers["sys_platform"] == "linux"
    assert facts.tags[0].startswith(f"{facts.abi}-{facts.abi}-")
    assert "py3-none-any" in facts.tags
    assert any("abi3" in tag for tag in facts.tags)


def test_the_tags_are_those_that_the_python_itself_would_name() -> None:
    code = "import packaging.tags as t; print(*t.sys_tags(), sep='\\n')"
    own = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert list(interpreter.facts(BASE).tags) == own


def test_another_python_has_its_own_facts() -> None:
    others = [python for python in pythons.everything() if not python.version.startswith(f"{MINOR}.")]
    for python in others[:2]:
        facts = interpreter.facts(python.path)
        assert facts.version == python.version
        assert facts.markers["python_full_version"] == python.version
        assert facts.tags[0].startswith(facts.abi)
        if facts.pip_wheel is not None:
            assert Path(facts.pip_wheel).is_file()


@pytest.mark.parametrize("program", ["", "exit 3", "echo no Python", "kill -SEGV $$"])
def test_a_broken_python_is_told(tmp_path: Path, program: str) -> None:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    with pytest.raises(EnvforgeError, match="does not work") as caught:
        interpreter.facts(str(path))
    assert caught.value.code == "python-broken"
    assert caught.value.cause


def test_a_python_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvforgeError) as caught:
        interpreter.facts(str(tmp_path / "python"))
    assert caught.value.code == "python-broken"
