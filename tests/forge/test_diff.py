from __future__ import annotations

from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.diff import diff
from envforge.model.errors import EnvforgeError


def test_between_two_snapshots(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small/1.1", "small/1.2").data
    (change,) = data.changes
    assert (data.before, data.after) == ("small/1.1", "small/1.2")
    assert change.before is not None
    assert change.after is not None
    assert (change.name, change.before.version, change.after.version) == ("six", "2.0", "1.0")


def test_nothing_differs_right_after_the_build(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small").data
    assert (data.before, data.after, data.changes) == ("small/1.2", "small", ())
    assert diff(shop, "small", "small").data.changes == ()


def test_one_snapshot_alone_is_compared_with_now(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small/1.1").data
    assert (data.before, data.after) == ("small/1.1", "small")
    assert [change.name for change in data.changes] == ["six"]


def test_what_was_installed_behind_its_back(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    small_home.put(small_home.site(shop), "extra", "3.0")
    (change,) = diff(shop, "small").data.changes
    assert (change.name, change.before) == ("extra", None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("small/9.1", "snapshot-not-found"),
        ("other/1.1", "no-such-environment"),
        ("small/x", "invalid-name"),
        ("small/1.2.3", "invalid-name"),
        ("a b", "invalid-name"),
    ],
)
def test_a_side_that_does_not_exist(tmp_path: Path, text: str, code: str) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    with pytest.raises(EnvforgeError) as caught:
        diff(shop, text, "small")
    assert caught.value.code == code
