from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envforge.model.drift import Stamp
from envforge.store import seen
from envforge.store.layout import Home

SEEN: dict[str, Stamp] = {"bin/python": (1, 2**61, 3, 4), "lib/\n \udcff.py": (0, 0, -1, 9)}
PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=[]), min_size=1, max_size=5)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home", tmp_path / "cache")
    found.ensure()
    found.make_record("demo", 1)
    return found


def test_what_was_written_is_read(home: Home) -> None:
    assert seen.read(home, "demo", 1) is None
    assert seen.write(home, "demo", 1, SEEN, deep=True, step=3, told=True)
    assert seen.read(home, "demo", 1) == seen.SeenRecord(seen=SEEN, deep=True, step=3, told=True)
    assert seen.write(home, "demo", 1, {}, deep=False, step=4, told=False)
    assert seen.read(home, "demo", 1) == seen.SeenRecord(seen={}, deep=False, step=4, told=False)


@given(st.dictionaries(PATHS, st.tuples(*[st.integers(-(2**63), 2**63)] * 4), max_size=4))
def test_every_table_survives(tmp_path_factory: pytest.TempPathFactory, table: dict[str, Stamp]) -> None:
    folder = tmp_path_factory.mktemp("home")
    home = Home(folder, folder / "cache")
    home.make_record("demo", 1)
    assert seen.write(home, "demo", 1, table, deep=False, step=0, told=False)
    found = seen.read(home, "demo", 1)
    assert found is not None
    assert found.seen == table


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2}, {"schema": None}, {"deep": 1}, {"told": None}, {"step": "1"}, {"step": True}, {"paths": "one"},
        {"paths": ["a", "b"]}, {"size": [1]}, {"size": [1, "2"]}, {"size": [1, True]}, {"mtime": 3}, {"inode": None},
    ],
)  # fmt: skip
def test_what_cannot_be_understood_was_never_seen(home: Home, change: dict[str, Any]) -> None:
    assert seen.write(home, "demo", 1, SEEN, deep=True, step=3, told=False)
    path = home.record("demo", 1) / "seen.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert seen.read(home, "demo", 1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 200_000, "\udcff"])
def test_a_corrupt_file_was_never_seen(home: Home, text: str) -> None:
    (home.record("demo", 1) / "seen.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert seen.read(home, "demo", 1) is None


def test_a_record_that_is_not_there_is_not_made(home: Home) -> None:
    assert not seen.write(home, "demo", 2, SEEN, deep=True, step=1, told=False)
    assert not home.record("demo", 2).exists()


def test_a_planted_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    home.record("demo", 1).rmdir()
    home.record("demo", 1).symlink_to(target)
    assert not seen.write(home, "demo", 1, SEEN, deep=True, step=1, told=False)
    assert list(target.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_who_may_not_write_goes_without(home: Home) -> None:
    folder = home.record("demo", 1)
    folder.chmod(0o500)
    try:
        assert not seen.write(home, "demo", 1, SEEN, deep=True, step=1, told=False)
    finally:
        folder.chmod(0o700)
