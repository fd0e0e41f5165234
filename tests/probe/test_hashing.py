from __future__ import annotations

import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envforge.probe.hashing import digests, of_link


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 3 * 2**20), max_size=4), workers=st.sampled_from([None, 1, 3]))
def test_the_digests_are_those_of_the_bytes(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], workers: int | None
) -> None:
    folder = tmp_path_factory.mktemp("files")
    wanted = {}
    for number, size in enumerate(sizes):
        data = bytes([number]) * size
        (folder / str(number)).write_bytes(data)
        wanted[str(number)] = hashlib.sha256(data).hexdigest()
    assert digests(folder, wanted, workers=workers) == wanted


def test_a_chunk_and_its_neighbours(tmp_path: Path) -> None:
    wanted = {}
    for size in (2**20 - 1, 2**20, 2**20 + 1, 2**21):
        (tmp_path / str(size)).write_bytes(b"x" * size)
        wanted[str(size)] = hashlib.sha256(b"x" * size).hexdigest()
    assert digests(tmp_path, wanted) == wanted


def test_more_files_than_one_batch_keep_their_own_digests(tmp_path: Path) -> None:
    wanted = {}
    for number in range(300):
        (tmp_path / str(number)).write_text(str(number))
        wanted[str(number)] = hashlib.sha256(str(number).encode()).hexdigest()
    assert digests(tmp_path, list(wanted)) == wanted
    assert digests(tmp_path, []) == {}


def test_what_is_gone_or_no_file_has_none_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    paths = ["pipe", "folder", "gone", "with\0zero"]
    assert digests(tmp_path, paths) == dict.fromkeys(paths)


def test_a_link_is_its_target_and_not_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to("secret")
    name = os.fsdecode(b"\xff")
    (tmp_path / "odd").symlink_to(name)
    assert digests(tmp_path, ["link", "odd"]) == {"link": of_link("secret"), "odd": of_link(name)}
    assert of_link("secret") == hashlib.sha256(b"link:secret").hexdigest()


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(64 * 2**20)
    tracemalloc.start()
    try:
        digests(tmp_path, ["large"])
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
