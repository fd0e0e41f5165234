from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.wheels import Wheel
from probe.conftest import Install

from envforge.model.drift import Stamp
from envforge.probe.prefix import look
from envforge.probe.stamps import differing, stamps

SEEN = st.dictionaries(st.text(min_size=1, max_size=3), st.tuples(*[st.integers(0, 2)] * 4))


def test_every_file_is_there_as_the_table_of_a_look_has_it(venv: Path, install: Install) -> None:
    install(venv, Wheel(name="tiny", version="1"))
    rows = {row.path: (row.size, row.mtime, row.inode) for row in look(venv).files}
    found = stamps(venv)
    assert {path: (size, mtime, inode) for path, (size, mtime, _, inode) in found.items()} == rows
    assert found["bin/python"][2] == (venv / "bin/python").lstat().st_ctime_ns


def test_bytecode_is_left_out_and_sourceless_modules_are_not(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("__pycache__/x.cpython-311.pyc", "__pycache__/data.txt", "module.pyc"):
        (tmp_path / name).touch()
    assert set(stamps(tmp_path)) == {"__pycache__/data.txt", "module.pyc"}


def test_links_are_not_followed_and_special_files_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file").touch()
    (tmp_path / "link").symlink_to("inside")
    (tmp_path / "nowhere").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    assert set(stamps(tmp_path)) == {"inside/file", "link", "nowhere"}


def test_nothing_is_raised_for_what_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert stamps(tmp_path / "absent") == {}
    assert stamps(tmp_path / "file") == {}


def test_a_link_to_the_prefix_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    assert set(stamps(tmp_path / "link")) == {"file"}


def test_an_edit_that_puts_size_and_mtime_back_still_shows(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("right")
    # A clock that ticks coarsely must have moved on.
    os.utime(file, ns=(10**18, 10**18))
    seen = stamps(tmp_path)
    while True:
        file.write_text("wrong")
        os.utime(file, ns=(10**18, 10**18))
        if file.stat().st_ctime_ns != seen["file"][2]:
            break
    assert differing(seen, stamps(tmp_path)) == (("file",), (), ())


def test_changed_gone_and_new_are_told_apart() -> None:
    seen: dict[str, Stamp] = {"same": (1, 1, 1, 1), "other": (1, 1, 1, 1), "gone": (1, 1, 1, 1)}
    now: dict[str, Stamp] = {"same": (1, 1, 1, 1), "other": (1, 1, 2, 1), "new": (1, 1, 1, 1)}
    assert differing(seen, now) == (("other",), ("gone",), ("new",))


@given(SEEN, SEEN)
def test_every_path_is_as_it_was_or_in_one_list(before: dict[str, Stamp], after: dict[str, Stamp]) -> None:
    changed, gone, new = differing(before, after)
    same = {path for path in before if before[path] == after.get(path)}
    assert sorted((*changed, *gone, *new, *same)) == sorted(before.keys() | after.keys())
    assert differing(before, before) == ((), (), ())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_may_not_be_listed_reads_as_gone(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file").touch()
    (tmp_path / "closed").chmod(0)
    try:
        assert stamps(tmp_path) == {}
    finally:
        (tmp_path / "closed").chmod(0o700)
