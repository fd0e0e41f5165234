from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envforge.model.errors import EnvforgeError
from envforge.store.journal import Journal


def test_events_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "record" / "journal.jsonl")
    assert journal.events() == ()
    first = journal.append("started", profile="x", steps=["a", "b"])
    second = journal.append("step-started", name="a\nb", path="\udc80")
    assert journal.events() == (first, second)
    assert journal.path.read_bytes().count(b"\n") == 2


@given(cut=st.integers(min_value=0, max_value=200))
def test_wherever_a_writer_was_killed_the_whole_lines_remain(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal.jsonl")
    written = [journal.append("step-started", name=str(number)) for number in range(3)]
    content = journal.path.read_bytes()[:cut]
    journal.path.write_bytes(content)
    whole = written[: content.count(b"\n")]
    assert list(journal.events()) == whole
    added = journal.append("failed")
    assert list(journal.events()) == [*whole, added]


@pytest.mark.parametrize("line", [b"garbage", b"[]", b'{"kind": 1, "at": "x", "data": {}}', b"\xff\xfe", b""])
def test_another_corruption_names_file_and_line(tmp_path: Path, line: bytes) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append("started")
    journal.path.write_bytes(journal.path.read_bytes() + line + b"\n")
    journal.append("finished")
    with pytest.raises(EnvforgeError, match=r"journal\.jsonl") as caught:
        journal.events()
    assert caught.value.code == "corrupt-record"
    assert caught.value.cause is not None
    assert "line 2" in caught.value.cause


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvforgeError):
        Journal(tmp_path / "journal.jsonl").append("started")
    assert not (tmp_path / "elsewhere").exists()
