from __future__ import annotations

from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.profiles import find, profiles, recorded
from envforge.model.errors import UsageError
from envforge.model.profile import Backend
from envforge.model.progress import Note, Progress


def test_the_path_that_was_taken_is_told(tmp_path: Path) -> None:
    told: list[Progress] = []
    path = tmp_path / "small.yaml"
    path.write_text(small_home.PROFILE, encoding="utf-8")
    profile = find(small_home.shop(tmp_path / "home", told), str(path))
    assert profile.name == "small"
    assert told == [Note(text=f"profile {path}")]


def test_another_backend_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(small_home.PROFILE, encoding="utf-8")
    shop = small_home.shop(tmp_path / "home")
    assert find(shop, str(path), backend="conda").backend is Backend.CONDA
    with pytest.raises(UsageError):
        find(shop, str(path), backend="docker")


def test_shipped_ones_and_broken_ones_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.yaml").write_text(small_home.PROFILE, encoding="utf-8")
    (tmp_path / "profiles" / "broken.yaml").write_text("steps: [", encoding="utf-8")
    (tmp_path / "profiles" / "quickstart.yaml").write_text(small_home.PROFILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    entries = {entry.name: entry for entry in profiles(small_home.shop(tmp_path / "home")).data.profiles}
    assert {"mine", "broken", "quickstart", "xin", "xinv100"} <= set(entries)
    assert (entries["mine"].origin, entries["mine"].fits, entries["mine"].needs) == ("project", True, "any machine")
    assert "broken.yaml:1:" in (entries["broken"].problem or "")
    assert "hides the shipped profile" in (entries["quickstart"].problem or "")
    assert entries["xinv100"].origin == "shipped"
    assert "7.0" in (entries["xinv100"].needs or "")


def test_the_recorded_profile_says_what_the_built_one_said(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    built = small_home.environment(shop)
    back = recorded(shop.home, "small", 1)
    assert (back.steps, back.guards, back.environment, back.commands) == (
        built.steps, built.guards, built.environment, built.commands,
    )  # fmt: skip
