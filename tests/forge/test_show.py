from __future__ import annotations

from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.show import show
from envforge.model.errors import UsageError
from envforge.store.journal import Journal


def test_what_is_recorded_is_shown(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = show(shop, "small").data
    assert (data.generation, data.verdict, data.profile, data.summary) == (1, "conforms", "small", "a small one")
    assert data.prefix == str(shop.home.prefix("small", 1).resolve())
    assert data.steps == ("base", "pin")
    assert data.snapshots == ("small/1.1", "small/1.2")
    assert data.commands == ("hello", "broken")
    assert data.built is not None
    assert (data.built.by, data.built.machine, data.distributions) == ("tester", "box", 1)
    assert (data.card, data.restorable, data.used_by) == ("any machine", True, ())


def test_outdated_is_judged_by_what_the_profile_says_and_not_by_its_text(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    source = tmp_path / "small.yaml"
    Journal(shop.home.journal("small", 1)).append("started", source=str(source))
    source.write_text("# a remark\n" + small_home.PROFILE, encoding="utf-8")
    assert show(shop, "small").data.outdated is False
    source.write_text(small_home.PROFILE.replace("six<2", "six<3"), encoding="utf-8")
    data = show(shop, "small").data
    assert data.outdated is True
    assert f"`{source}` changed" in (data.outdated_why or "")
    source.write_text("steps: [", encoding="utf-8")
    assert show(shop, "small").data.outdated is None


def test_without_its_profile_nobody_knows(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = show(shop, "small").data
    assert data.outdated is None
    assert "`small`" in (data.outdated_why or "")


def test_damaged_records_are_shown_as_far_as_they_go(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    record = shop.home.record("small", 1)
    (record / "profile.yaml").write_bytes(b"\xff")
    shop.home.journal("small", 1).write_bytes(b"{\n")
    (record / "snapshots" / "2.json").write_bytes(b"[]")
    data = show(shop, "small").data
    assert (data.generation, data.verdict, data.built, data.outdated) == (1, "unreadable", None, None)


def test_a_build_that_was_never_used(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop, switch=False)
    data = show(shop, "small").data
    assert (data.generation, data.prefix, data.generations) == (None, None, (1,))


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        show(small_home.shop(tmp_path), "small")
