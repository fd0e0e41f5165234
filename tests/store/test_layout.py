from __future__ import annotations

import os
from pathlib import Path

import pytest

from envforge.model.errors import EnvforgeError, UsageError
from envforge.store.layout import Home, check_name


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home", tmp_path / "home" / "cache")
    made.ensure()
    return made


def a_generation(home: Home, name: str, number: int) -> None:
    home.prefix(name, number).mkdir(parents=True)
    home.make_record(name, number)


@pytest.mark.parametrize("name", ["x", "xinv100", "a.b-c_D", "9"])
def test_a_good_name_is_returned(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a/b", "a b", "-x", "é", "a\n", "x" * 201])
def test_a_bad_name_is_refused_with_exit_2(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name") as caught:
        check_name(name)
    assert caught.value.code == "invalid-name"
    assert caught.value.hint


def test_a_fresh_home_holds_nothing(home: Home) -> None:
    assert home.environments() == ()
    assert home.current("x") is None
    assert home.generations("x") == ()
    assert home.next_generation("x") == 1


def test_switch_leads_to_the_generation_and_is_seen(home: Home) -> None:
    a_generation(home, "x", 1)
    a_generation(home, "x", 2)
    home.switch("x", 1)
    assert home.current("x") == 1
    home.switch("x", 2)
    assert home.current("x") == 2
    assert home.link("x").resolve() == home.prefix("x", 2).resolve()
    assert home.environments() == ("x",)
    assert sorted(path.name for path in home.envs.iterdir()) == ["x"]


def test_switch_takes_away_what_a_killed_switch_left(home: Home) -> None:
    a_generation(home, "x", 1)
    (home.envs / ".x.switching").symlink_to("nowhere")
    home.switch("x", 1)
    assert home.current("x") == 1
    assert sorted(path.name for path in home.envs.iterdir()) == ["x"]


def test_switch_to_what_is_not_there_changes_nothing(home: Home) -> None:
    a_generation(home, "x", 1)
    home.switch("x", 1)
    with pytest.raises(EnvforgeError) as caught:
        home.switch("x", 7)
    assert caught.value.code == "generation-missing"
    assert home.current("x") == 1


def test_switch_over_a_real_folder_is_refused(home: Home) -> None:
    a_generation(home, "x", 1)
    (home.envs / "x").mkdir()
    with pytest.raises(EnvforgeError) as caught:
        home.switch("x", 1)
    assert caught.value.code == "not-a-link"
    assert sorted(path.name for path in home.envs.iterdir()) == ["x"]


@pytest.mark.parametrize("target", ["/etc", "../generations/y/1", "../generations/x/latest", "../generations/x/1/lib"])
def test_current_accepts_only_links_into_the_generations_of_its_name(home: Home, target: str) -> None:
    a_generation(home, "y", 1)
    (home.prefix("x", 1) / "lib").mkdir(parents=True)
    home.link("x").symlink_to(target)
    assert home.current("x") is None


def test_current_is_none_when_the_link_dangles_or_the_generation_is_a_planted_link(home: Home, tmp_path: Path) -> None:
    a_generation(home, "x", 1)
    home.switch("x", 1)
    home.prefix("x", 1).rmdir()
    assert home.current("x") is None
    home.prefix("x", 1).symlink_to(tmp_path)
    assert home.current("x") is None


def test_a_home_behind_a_symlink_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    home = Home(tmp_path / "link", tmp_path / "cache")
    home.ensure()
    a_generation(home, "x", 3)
    home.switch("x", 3)
    assert home.current("x") == 3
    assert Home(tmp_path / "real", tmp_path / "cache").current("x") == 3


def test_numbers_are_never_used_again(home: Home) -> None:
    a_generation(home, "x", 1)
    home.prefix("x", 4).mkdir()
    (home.prefix("x", 4).parent / "old").mkdir()
    home.make_record("x", 10)
    assert home.generations("x") == (1, 10)
    assert home.next_generation("x") == 11


def test_environments_are_those_with_a_link_or_records(home: Home) -> None:
    home.make_record("recorded", 1)
    home.link("linked").symlink_to("nowhere")
    (home.records_root / "empty").mkdir()
    (home.envs / ".hidden").symlink_to("nowhere")
    assert home.environments() == ("linked", "recorded")


@pytest.mark.parametrize("planted", ["records", "records/x", "records/x/1"])
def test_records_are_never_written_through_a_planted_link(home: Home, tmp_path: Path, planted: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = home.root / planted
    if place.is_dir():
        place.rmdir()
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(elsewhere)
    with pytest.raises(EnvforgeError) as caught:
        home.make_record("x", 1)
    assert caught.value.code == "planted-link"
    assert list(elsewhere.iterdir()) == []


def test_a_home_that_is_a_file_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(EnvforgeError, match="home") as caught:
        Home(tmp_path / "home", tmp_path / "cache").ensure()
    assert caught.value.code == "home-not-writable"
    assert caught.value.hint
    assert "ENVFORGE_HOME" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_is_told(tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir(mode=0o555)
    with pytest.raises(EnvforgeError) as caught:
        Home(root, tmp_path / "cache").ensure()
    assert caught.value.code == "home-not-writable"


def test_unlink_takes_only_the_link(home: Home) -> None:
    a_generation(home, "x", 1)
    home.switch("x", 1)
    home.unlink("x")
    home.unlink("x")
    assert home.current("x") is None
    assert home.prefix("x", 1).is_dir()
