"""Symlinks planted where envforge writes: refused or replaced, never followed; nothing outside the home is touched."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.house import House
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.forge.audit import audit
from envforge.forge.rebuild import rebuild
from envforge.forge.remove import remove
from envforge.model.errors import EnvforgeError
from envforge.store import contents, locking, scratch
from envforge.store.layout import Home
from envforge.system import http

STEP = {"name": "six", "install": ["six"]}
PRECIOUS = "not yours\n"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read
    with serve({"pypi": Index(artefacts=[Wheel(name="six", version="1.0.0")])}) as server:
        house = House(tmp_path, server)
        house.create([STEP])
        yield house


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder and a file of somebody else's."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text(PRECIOUS)
    return folder


def untouched(outside: Path) -> None:
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == PRECIOUS


def test_where_a_generation_would_be_built(made: House, outside: Path) -> None:
    home = made.shop.home
    home.prefix("demo", 2).symlink_to(outside)
    home.prefix("demo", 3).symlink_to(outside / "not there")
    home.record("demo", 4).symlink_to(outside)
    home.prefix("demo", 5).write_text("a file")
    assert rebuild(made.shop, "demo").data.generation == 6
    assert home.generations("demo") == (1, 6)
    untouched(outside)


@pytest.mark.parametrize("place", ["generations/demo", "records/demo", "cache/scratch", "locks/demo.lock", "locks"])
def test_folders_and_locks_are_refused(made: House, outside: Path, place: str) -> None:
    planted = made.shop.home.root / place
    if planted.exists():
        planted.rename(planted.with_name("moved"))
    planted.symlink_to(outside / "file" if place.endswith(".lock") else outside)
    with pytest.raises(EnvforgeError) as caught:
        made.create([STEP], again=True)
    assert caught.value.code == "planted-link", caught.value
    assert str(outside) in caught.value.message
    untouched(outside)


def test_files_are_replaced(made: House, outside: Path) -> None:
    home = made.shop.home
    record = home.record("demo", 1)
    file = outside / "file"
    (record / "seen.json").unlink(missing_ok=True)
    (record / "seen.json").symlink_to(file)
    (home.locks_root / "demo.holder.json").symlink_to(file)
    (home.envs / ".demo.switching").symlink_to(file)
    for known in (made.settings.cache / "known").iterdir():
        known.unlink()
        known.symlink_to(file)
    assert audit(made.shop, "demo").exit == 0
    assert not (record / "seen.json").is_symlink()
    (record / "journal.jsonl").rename(outside.parent / "journal")
    (record / "journal.jsonl").symlink_to(file)
    assert rebuild(made.shop, "demo").exit == 0
    assert (record / "quarantine/journal.jsonl.1").is_symlink()
    untouched(outside)


@pytest.mark.parametrize("place", ["quarantine", "snapshots", "contents", "logs"])
def test_folders_of_a_record(tmp_path: Path, outside: Path, place: str) -> None:
    home = Home(tmp_path / "home", tmp_path / "home/cache")
    home.ensure()
    (home.make_record("demo", 1) / place).symlink_to(outside)
    with pytest.raises(EnvforgeError) as caught:
        home.make_folder(home.record("demo", 1) / place)
    assert caught.value.code == "planted-link"
    if place == "contents":
        with pytest.raises(EnvforgeError):
            contents.keep(home, "demo", 1, outside / "file", "0" * 64)
    untouched(outside)


def test_removing_follows_no_link(made: House, outside: Path) -> None:
    home = made.shop.home
    (home.prefix("demo", 1) / "lib/link").symlink_to(outside)
    home.prefix("demo", 7).symlink_to(outside)
    home.record("demo", 7).symlink_to(outside)
    remove(made.shop, "demo")
    assert home.environments() == ()
    untouched(outside)


def test_what_a_killed_command_left_in_the_scratch_goes_and_what_is_used_stays(tmp_path: Path) -> None:
    (tmp_path / "scratch/build-dead/deep").mkdir(parents=True)
    with scratch.scratch(tmp_path / "scratch") as first, scratch.scratch(tmp_path / "scratch") as second:
        assert {path.name for path in (tmp_path / "scratch").iterdir()} == {first.name, second.name}
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_lock_that_is_a_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "home/cache")
    (home.locks_root / "demo.lock").mkdir(parents=True)
    with pytest.raises(EnvforgeError) as caught, locking.hold(home, "demo", "create"):
        pass
    assert caught.value.code == "home-not-writable"
