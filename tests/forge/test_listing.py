from __future__ import annotations

import os
from pathlib import Path

from forge import small_home

from envforge.forge.listing import listing, sizes


def test_environments_with_their_verdict(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    assert listing(shop).data.environments == ()
    small_home.environment(shop)
    small_home.environment(shop, "half", switch=False)
    half, small = listing(shop).data.environments
    assert (small.name, small.generation, small.profile, small.verdict) == ("small", 1, "small", "conforms")
    assert (half.generation, half.bytes) == (None, None)


def test_sizes_are_asked_for(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    (entry,) = listing(shop, size=True).data.environments
    assert entry.bytes is not None
    assert entry.bytes > 0


def test_a_file_with_a_link_elsewhere_is_shared_and_one_with_two_links_inside_is_not(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "alone").write_bytes(b"x" * 10)
    (inside / "twice").write_bytes(b"x" * 100)
    os.link(inside / "twice", inside / "again")
    (tmp_path / "cache").write_bytes(b"x" * 1000)
    os.link(tmp_path / "cache", inside / "linked")
    assert sizes(inside) == (110, 1000)


def test_records_that_cannot_be_read_do_not_stop_the_list(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    shop.home.journal("small", 1).write_bytes(b"\xff\xfe\n")
    (shop.home.record("small", 1) / "profile.yaml").unlink()
    (entry,) = listing(shop).data.environments
    assert (entry.verdict, entry.profile) == ("unreadable", None)
