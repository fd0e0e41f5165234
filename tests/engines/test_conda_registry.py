"""One line in a file of the user's: added once, taken out again, and nothing else of the file is touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from envforge.engines.conda_registry import add, drop

OURS = "/home/user/forge/envs/demo"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".conda/environments.txt"


def test_it_is_made_and_listed_once(file: Path) -> None:
    assert add(file, OURS)
    assert not add(file, OURS)
    assert file.read_text() == f"{OURS}\n"
    assert drop(file, OURS)
    assert not drop(file, OURS)
    assert file.read_text() == ""


@pytest.mark.parametrize("end", ["\n", "", "\n\n", "\r\n"])
def test_other_lines_stay_as_they_are(file: Path, end: str) -> None:
    file.parent.mkdir()
    others = f"# mine\n/opt/conda\n\n  /srv/two words {end}".encode() + b"/caf\xe9" + end.encode()
    file.write_bytes(others)
    file.chmod(0o640)
    add(file, OURS)
    between = b"" if others.endswith(b"\n") else b"\n"
    assert file.read_bytes() == others + between + OURS.encode() + b"\n"
    drop(file, OURS)
    assert file.read_bytes() == others + between
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [*file.parent.iterdir()] == [file]


def test_only_the_whole_line_counts(file: Path) -> None:
    file.parent.mkdir()
    text = f"{OURS}2\n{OURS}/inside\n/x{OURS}\n"
    file.write_text(text)
    assert not drop(file, OURS)
    assert add(file, OURS)
    assert drop(file, OURS)
    assert file.read_text() == text
    file.write_text(f" {OURS} \r\n/other\n")
    assert not add(file, OURS)
    drop(file, OURS)
    assert file.read_text() == "/other\n"


@pytest.mark.parametrize("there", [True, False])
def test_a_symlink_stays_one(file: Path, tmp_path: Path, there: bool) -> None:
    real = tmp_path / "dotfiles/environments.txt"
    real.parent.mkdir()
    if there:
        real.write_text("/opt/conda\n")
    file.parent.mkdir()
    file.symlink_to(real)
    add(file, OURS)
    assert file.is_symlink()
    assert real.read_text().splitlines() == ([*(["/opt/conda"] if there else []), OURS])
    drop(file, OURS)
    assert file.is_symlink()
    assert real.read_text() == ("/opt/conda\n" if there else "")


def test_what_is_no_file_is_an_error_and_keeps_nobody_waiting(file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)
    with pytest.raises(OSError, match="No such device"):
        add(file, OURS)
    file.unlink()
    file.mkdir()
    with pytest.raises(IsADirectoryError):
        add(file, OURS)
    with pytest.raises(IsADirectoryError):
        drop(file, OURS)
