from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.wheels import Wheel
from probe.conftest import Install

from envforge.probe.launch import stamp
from envforge.probe.stamps import differing

SIX = Wheel(name="six", version="1.0.0")


def test_distributions_and_what_runs_at_every_start_are_there(venv: Path, site: Path, install: Install) -> None:
    install(venv, SIX)
    (site / "extra.pth").touch()
    found = stamp(venv)
    place = site.relative_to(venv).as_posix()
    assert {"pyvenv.cfg", "bin/python", f"{place}/six-1.0.0.dist-info", f"{place}/extra.pth"} <= found.keys()
    assert found[f"{place}/six"] == ""
    facts = (site / "six-1.0.0.dist-info/RECORD").stat()
    assert found[f"{place}/six-1.0.0.dist-info"] == f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ino}"


@pytest.mark.parametrize("pip", [False, True])
def test_a_reinstallation_shows_and_bytecode_does_not(venv: Path, site: Path, install: Install, pip: bool) -> None:
    (site / "single.py").write_text("x = 1\n")
    install(venv, SIX, pip=pip)
    before = stamp(venv)
    subprocess.run([venv / "bin/python", "-c", "import six, single"], check=True, env={})
    assert (site / "__pycache__").is_dir()
    assert stamp(venv) == before
    install(venv, Wheel(name="six", version="2.0.0"), pip=pip)
    changed, gone, new = differing(before, stamp(venv))
    assert {Path(path).name for path in (*changed, *gone, *new)} == {"six-1.0.0.dist-info", "six-2.0.0.dist-info"}


DEEDS: dict[str, Callable[[Path, Path], object]] = {
    "sitecustomize": lambda root, site: (site / "sitecustomize.py").write_text("import os\n"),
    "pth": lambda root, site: (site / "own.pth").write_text("import os\n"),
    "module": lambda root, site: (site / "own.py").unlink(),
    "record": lambda root, site: (site / "some.dist-info/RECORD").unlink(),
    "cfg": lambda root, site: (root / "pyvenv.cfg").write_text("home = /elsewhere\n"),
    "python": lambda root, site: (root / "bin/python3").unlink(),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_change_of_what_decides_shows(venv: Path, site: Path, deed: str) -> None:
    (site / "some.dist-info").mkdir()
    for name in ("sitecustomize.py", "own.pth", "own.py", "some.dist-info/RECORD"):
        (site / name).touch()
    before = stamp(venv)
    DEEDS[deed](venv, site)
    assert stamp(venv) != before


def test_another_link_to_the_same_file_is_no_change(venv: Path, site: Path) -> None:
    (site / "own.pth").touch()
    before = stamp(venv)
    os.link(site / "own.pth", site.parent / "elsewhere")
    assert stamp(venv) == before


def test_nothing_is_raised_for_what_is_not_there(venv: Path, site: Path) -> None:
    (site / "empty.dist-info").mkdir()
    assert stamp(venv)[site.relative_to(venv).as_posix() + "/empty.dist-info"] == "absent"
    shutil.rmtree(venv / "lib")
    assert "pyvenv.cfg" in stamp(venv)
    assert stamp(venv / "absent") == {}
