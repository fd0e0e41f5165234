"""Activation scripts of a real venv, in the shells that are here: what they set, and what `deactivate` puts back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from envforge.engines import activation, uv
from envforge.system import environ

SHELLS = {
    "dash": (".", "bin/activate"),
    "bash": (".", "bin/activate"),
    "zsh": (".", "bin/activate"),
    "fish": ("source", "bin/activate.fish"),
    "tcsh": ("source", "bin/activate.csh"),
}
QUIET = {"zsh": ["-f"], "fish": ["--no-config"], "tcsh": ["-f"]}
ODD = {
    "QUOTED": 'it\'s "quoted" $HOME `id` \\ ! \\n *',
    "EMPTY": "",
    "TWO_LINES": "one\ntwo",
    "SOME_PATH": "/a:/b c",
    "WAS_THERE": "new",
    "PYTHONNOUSERSITE": "1",
}
HOST = {"PATH": "/usr/bin:/bin", "WAS_THERE": "old $x '\"!", "SOME_PATH": "/old:/older"}


def made(place: Path) -> Path:
    subprocess.run([uv.binary(), "venv", "-q", "-p", sys.executable, str(place)], check=True, env=environ.hermetic())
    return place


def equipped(place: Path, variables: Mapping[str, str]) -> Path:
    assert activation.equip(made(place), variables) == ()
    return place


def told(shell: str, folder: Path, *lines: str) -> list[dict[str, str]]:
    """What the environment is after each of ``lines`` of ``shell``; what it was before comes first."""
    show = f"'{sys.executable}' -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    script = folder / f"script.{shell}"
    script.write_text("\n".join([show, *(word for line in lines for word in (line, show))]) + "\n")
    command = [shutil.which(shell) or "", *QUIET.get(shell, []), str(script)]
    done = subprocess.run(command, env={**HOST, "HOME": str(folder)}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def there() -> list[str]:
    return [shell for shell in SHELLS if shutil.which(shell)]


def of(states: Mapping[str, str]) -> dict[str, str | None]:
    return {name: states.get(name) for name in (*ODD, "PATH", "VIRTUAL_ENV")}


@pytest.mark.parametrize("shell", there())
def test_variables_are_set_and_put_back(shell: str, tmp_path: Path) -> None:
    place = equipped(tmp_path / "venv", ODD)
    source, script = SHELLS[shell]
    activate = f"{source} '{place / script}'"
    before, inside, again, after = told(shell, tmp_path, activate, activate, "deactivate")
    on = {**ODD, "PATH": f"{place}/bin:{HOST['PATH']}", "VIRTUAL_ENV": str(place)}
    assert of(before) == {**dict.fromkeys(on), **HOST}
    assert (of(inside), of(again)) == (on, on)
    assert of(after) == of(before)


@pytest.mark.parametrize("shell", there())
def test_the_next_environment_gets_nothing_of_the_one_before(shell: str, tmp_path: Path) -> None:
    first = equipped(tmp_path / "first", {"ONE": "1", "WAS_THERE": "first"})
    second = equipped(tmp_path / "second", {"TWO": "2"})
    source, script = SHELLS[shell]
    lines = [f"{source} '{place / script}'" for place in (first, second)]
    _, _, inside, after = told(shell, tmp_path, *lines, "deactivate")
    names = ("ONE", "TWO", "WAS_THERE", "VIRTUAL_ENV")
    assert [inside.get(name) for name in names] == [None, "2", HOST["WAS_THERE"], str(second)]
    assert [after.get(name) for name in names] == [None, None, HOST["WAS_THERE"], None]


@pytest.mark.parametrize("shell", there())
def test_a_path_of_the_profile_comes_after_the_environments_own(shell: str, tmp_path: Path) -> None:
    place = equipped(tmp_path / "venv", {"PATH": "/opt/some thing/bin:/bin", "VIRTUAL_ENV": "/elsewhere"})
    source, script = SHELLS[shell]
    _, inside, after = told(shell, tmp_path, f"{source} '{place / script}'", "deactivate")
    assert (inside["PATH"], inside["VIRTUAL_ENV"]) == (f"{place}/bin:/opt/some thing/bin:/bin", str(place))
    assert (after["PATH"], after.get("VIRTUAL_ENV")) == (HOST["PATH"], None)


def test_the_text_for_shells_that_may_not_be_here(tmp_path: Path) -> None:
    place = equipped(tmp_path / "venv", {"A": "it's", "B": "x!"})
    fish = (place / "bin/activate.fish").read_text()
    assert "set -q A; and set -g _ENVFORGE_OLD_A $A\nset -gx A 'it\\'s'\n" in fish
    assert "environment.'\n    functions -q _envforge_leave; and _envforge_leave\n" in fish
    csh = (place / "bin/activate.csh").read_text()
    assert "setenv A 'it'\\''s'\n" in csh
    assert "setenv B 'x\\!'\n" in csh
    assert "alias deactivate 'test $?_ENVFORGE_ON != 0 && _envforge_leave; test" in csh


def test_a_script_of_another_kind_stays_as_it_is(tmp_path: Path) -> None:
    place = made(tmp_path / "venv")
    (place / "bin/activate.csh").write_text("echo other\n")
    assert activation.equip(place, {"A": "b"}) == ("bin/activate.csh",)
    assert (place / "bin/activate.csh").read_text() == "echo other\n"
    assert "A=b; export A\n" in (place / "bin/activate").read_text()
