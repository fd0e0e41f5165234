from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from envforge.store import stamp
from envforge.store.layout import Home

STAMP = {"bin/python": "7 2 3", "lib/python3.11/site-packages/\udcff": ""}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home", tmp_path / "cache")
    found.ensure()
    found.make_record("demo", 1)
    return found


def test_what_was_written_is_read(home: Home) -> None:
    assert stamp.read(home, "demo", 1) is None
    assert stamp.write(home, "demo", 1, STAMP)
    assert stamp.read(home, "demo", 1) == STAMP


@pytest.mark.parametrize("change", [{"schema": 2}, {"paths": ["a"]}, {"paths": {"a": 1}}, {"paths": None}])
def test_what_cannot_be_understood_was_never_remembered(home: Home, change: dict[str, Any]) -> None:
    assert stamp.write(home, "demo", 1, STAMP)
    path = home.record("demo", 1) / "stamp.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert stamp.read(home, "demo", 1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 200_000, "\udcff"])
def test_a_corrupt_file_was_never_remembered(home: Home, text: str) -> None:
    (home.record("demo", 1) / "stamp.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert stamp.read(home, "demo", 1) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_who_may_not_write_goes_without(home: Home) -> None:
    folder = home.record("demo", 1)
    folder.chmod(0o500)
    try:
        assert not stamp.write(home, "demo", 1, STAMP)
    finally:
        folder.chmod(0o700)
