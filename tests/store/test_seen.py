from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envforge.model.drift import Stamp
from envforge.model.state import Clash, Debris, FileRow, Observation
from envforge.store import seen
from envforge.store.layout import Home

SEEN: dict[str, Stamp] = {"bin/python": (1, 2**61, 3, 4), "lib/\n \udcff.py": (0, 0, -1, 9)}
NEAR = FileRow(path="lib/both/a/b.py", size=1, mtime=2, inode=3, owners=("one",))
KEPT = Observation(
    state={},
    clashes=(Clash(path="lib/both/__init__.py", declared={"one": "1", "two": None}, actual="2"),),
    debris=(Debris(kind="leftover", name="~x", path="lib/~x", missing=("RECORD",), rows=("../x",)),),
    files=(NEAR,),
    unreadable={"lib/pipe": "it is no file"},
)
OBSERVATION = replace(KEPT, files=(NEAR, FileRow(path="lib/elsewhere.py", size=1, mtime=2, inode=3)))
TIMES = st.integers(-(2**63), 2**63 - 1)
PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=[]), min_size=1, max_size=5)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home", tmp_path / "cache")
    found.ensure()
    found.make_record("demo", 1)
    return found


def test_what_was_written_is_read(home: Home) -> None:
    known = frozenset({"bin/python"})
    assert seen.read(home, "demo", 1, {}) is None
    assert seen.write(home, "demo", 1, SEEN, known=known, observation=OBSERVATION, step=3)
    for now in ({}, SEEN, dict(reversed(SEEN.items()))):
        assert seen.read(home, "demo", 1, now) == seen.SeenRecord(seen=SEEN, known=known, observation=KEPT, step=3)
    assert seen.write(home, "demo", 1, {}, known=(), observation=None, step=4)
    assert seen.read(home, "demo", 1, SEEN) == seen.SeenRecord(seen={}, known=frozenset(), observation=None, step=4)


def test_a_time_that_8_bytes_cannot_hold_is_not_remembered_and_reads_as_other(home: Home) -> None:
    late: dict[str, Stamp] = {"bin/python": (0, 2**63, 0, 0)}
    assert not seen.write(home, "demo", 1, late, known=(), observation=None, step=3)
    assert seen.read(home, "demo", 1, late) is None
    assert seen.write(home, "demo", 1, SEEN, known=(), observation=None, step=3)
    found = seen.read(home, "demo", 1, late)
    assert found is not None
    assert found.seen == SEEN


@given(st.dictionaries(PATHS, st.tuples(*[TIMES] * 3, st.integers(0, 2**64 - 1)), max_size=4))
def test_every_table_survives(tmp_path_factory: pytest.TempPathFactory, table: dict[str, Stamp]) -> None:
    folder = tmp_path_factory.mktemp("home")
    home = Home(folder, folder / "cache")
    home.make_record("demo", 1)
    assert seen.write(home, "demo", 1, table, known=(), observation=None, step=0)
    found = seen.read(home, "demo", 1, {})
    assert found is not None
    assert found.seen == table


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2}, {"schema": None}, {"observation": 1}, {"observation": {}}, {"step": "1"}, {"step": True},
        {"paths": "one"}, {"paths": 3}, {"size": "AAAAAAAAAAA="}, {"size": "AAAA"}, {"size": "?"}, {"mtime": 3},
        {"inode": None}, {"known": 3}, {"known": [[]]},
    ],
)  # fmt: skip
def test_what_cannot_be_understood_was_never_seen(home: Home, change: dict[str, Any]) -> None:
    assert seen.write(home, "demo", 1, SEEN, known=(), observation=OBSERVATION, step=3)
    path = home.record("demo", 1) / "seen.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert seen.read(home, "demo", 1, SEEN) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 200_000, "\udcff"])
def test_a_corrupt_file_was_never_seen(home: Home, text: str) -> None:
    (home.record("demo", 1) / "seen.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert seen.read(home, "demo", 1, SEEN) is None


def test_a_record_that_is_not_there_is_not_made(home: Home) -> None:
    assert not seen.write(home, "demo", 2, SEEN, known=(), observation=None, step=1)
    assert not home.record("demo", 2).exists()


def test_a_planted_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    home.record("demo", 1).rmdir()
    home.record("demo", 1).symlink_to(target)
    assert not seen.write(home, "demo", 1, SEEN, known=(), observation=None, step=1)
    assert list(target.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_who_may_not_write_goes_without(home: Home) -> None:
    folder = home.record("demo", 1)
    folder.chmod(0o500)
    try:
        assert not seen.write(home, "demo", 1, SEEN, known=(), observation=None, step=1)
    finally:
        folder.chmod(0o700)
