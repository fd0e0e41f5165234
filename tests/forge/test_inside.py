"""Processes inside an environment: their variables, and files that they share with others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from forge import small_home

from envforge.forge import inside
from envforge.model.profile import Profile
from envforge.model.state import FileRow
from envforge.probe import prefix as prefixes
from envforge.store import snapshots


def test_the_clean_environment_with_the_prefix_first(tmp_path: Path) -> None:
    profile = Profile(name="demo", source="", text="", environment={"A": "profile", "B": "profile"})
    given = inside.variables(tmp_path, profile, lambda _: None, {"B": "extra"})
    assert (given["A"], given["B"], given["VIRTUAL_ENV"]) == ("profile", "extra", str(tmp_path))
    assert given["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
    assert not [name for name in given if name.startswith("UV_") and name != "UV_NO_CONFIG"]


def rows(shop_prefix: Path) -> tuple[FileRow, ...]:
    return prefixes.look(shop_prefix).files


def test_only_what_is_shared_and_written_in_place_is_poisoned(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    place = shop.home.prefix("small", 1)
    site = small_home.site(shop)
    shared, own, gone, replaced = (site / f"{name}.py" for name in ("shared", "own", "gone", "replaced"))
    for path in (shared, own, gone, replaced):
        path.write_text("x = 1\n")
    for path in (shared, gone, replaced):
        os.link(path, tmp_path / path.name)
    before = rows(place)
    assert inside.poisoned(shop.home, "small", 1, before) is None
    own.write_text("changed")
    gone.unlink()
    replaced.unlink()
    replaced.write_text("another file")
    assert inside.poisoned(shop.home, "small", 1, before) is None
    with shared.open("a") as file:
        file.write("evil = 1\n")
    hit = inside.poisoned(shop.home, "small", 1, before)
    assert hit is not None
    assert hit.paths == (shared.relative_to(place).as_posix(),)
    assert (hit.owners, hit.environments) == ((), ())
    (table,) = [snapshots.read(shop.home, "small", 1, 2)]
    snapshots.write(shop.home, replace(table, environment="other", files=before), "lock-version = '1.0'\n")
    hit = inside.poisoned(shop.home, "small", 1, before)
    assert hit is not None
    assert hit.environments == ("other/1",)
