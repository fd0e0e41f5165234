from __future__ import annotations

from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.path import path
from envforge.model.errors import EnvforgeError, UsageError


def test_it_is_the_real_path_and_not_the_link(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = path(shop, "small").data
    assert data.path == str(tmp_path.resolve() / "generations" / "small" / "1")
    assert data.generation == 1


def test_an_unknown_name_is_wrong_usage_with_the_names_that_come_close(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    with pytest.raises(UsageError) as caught:
        path(shop, "smal")
    assert caught.value.code == "no-such-environment"
    assert caught.value.hint == "did you mean `small`?"


@pytest.mark.parametrize("name", ["a/b", "..", "", "a b", "-x"])
def test_a_name_that_cannot_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        path(small_home.shop(tmp_path), name)
    assert caught.value.code == "invalid-name"


def test_an_environment_whose_build_never_ended(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop, switch=False)
    with pytest.raises(EnvforgeError) as caught:
        path(shop, "small")
    assert (caught.value.code, caught.value.exit) == ("no-generation", 1)
