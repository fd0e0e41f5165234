"""What nothing needs goes, and no more; a dry run says the same beforehand; a killed one is finished by the next."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engines.house import House
from kit.check import contract
from kit.cli import Cli, finish
from kit.index import Fault, Index, Server, serve
from kit.wheels import Sdist, Wheel

from envforge.engines.surplus import Held, surplus
from envforge.forge.audit import audit
from envforge.forge.diff import diff
from envforge.forge.history import history
from envforge.forge.prune import prune
from envforge.forge.rebuild import rebuild
from envforge.forge.remove import delete
from envforge.forge.rollback import rollback
from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.progress import Note
from envforge.model.views import PruneView
from envforge.store import locking, snapshots
from envforge.store.journal import Journal
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0", files={"six/data.txt": "x" * 5000})
IDNA = Wheel(name="idna", version="1.0.0", files={"idna/data.txt": "y" * 7000})
ATTRS = Wheel(name="attrs", version="1.0.0", files={"attrs/data.txt": "z" * 11_000})
OLD = Sdist(wheel=Wheel(name="old", version="1.0.0", files={"old/data.txt": "w" * 3000}), metadata="dynamic")
EVERYTHING: list[Wheel | Sdist] = [SIX, IDNA, ATTRS, OLD]


def step(*names: str) -> dict[str, Any]:
    return {"name": "-".join(names), "install": [*names]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture(name="server")
def _server() -> Iterator[Server]:
    with serve({"pypi": Index(artefacts=EVERYTHING)}) as server:
        yield server


def keeping(made: House, number: int) -> House:
    """The same home, of which prune keeps so many generations."""
    made.settings = replace(made.settings, keep_generations=number)
    made.shop = replace(made.shop, settings=made.settings)
    return made


def house(tmp_path: Path, server: Server) -> House:
    return House(tmp_path, server, keep_generations=20)


def there(made: House, name: str = "demo") -> tuple[int, ...]:
    return made.shop.home.prefixes(name)


def kinds(view: PruneView) -> list[tuple[str, str]]:
    return [(each.kind, each.what) for each in view.removed if each.kind != "cache"]


def cached(view: PruneView) -> set[str]:
    return {each.what for each in view.removed if each.kind == "cache"}


def notes(made: House) -> str:
    return "\n".join(each.text for each in made.told if isinstance(each, Note))


def tree(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*") if "locks" not in path.parts and path.name != ".in-use"}


def taken(root: Path) -> int:
    """Bytes on the disk, each file once however many links it has, records aside: those grow."""
    files = {}
    for folder in ("generations", "cache", "envs"):
        for path in (root / folder).rglob("*"):
            if path.is_symlink() or not path.is_dir():
                status = path.lstat()
                files[status.st_dev, status.st_ino] = status.st_size
    return sum(files.values())


@contextmanager
def using(prefix: Path) -> Iterator[int]:
    """A process that runs from ``prefix``."""
    python = str(prefix / "bin" / "python")
    child = subprocess.Popen(
        [python, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield child.pid
    finally:
        child.communicate(b"\n", timeout=30)


# -- generations -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dry_run_says_what_the_real_one_frees(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six"), step("attrs"), step("old")])
    made.create([step("idna")], again=True)
    made.create([step("idna")], again=True, smoke=[{"python": "raise SystemExit(1)"}])
    made.create([step("six", "idna")], name="other")
    home, cache = made.shop.home, made.settings.cache
    (home.generations_root / "gone" / "3").mkdir(parents=True)
    (home.generations_root / "gone" / "3" / "file").write_text("x" * 100)
    (home.generations_root / "demo" / ".9.pruned").mkdir()
    home.brought("demo", 2).mkdir()
    (home.brought("demo", 2) / "file").write_text("x" * 30)
    home.switching("demo").symlink_to(home.prefix("demo", 2))
    (cache / "scratch" / "build-dead").mkdir()
    (cache / "scratch" / "build-dead" / "file").write_text("x" * 50)
    (cache / "uv" / "archive-v0" / "dangling").mkdir()
    (cache / "uv" / "archive-v0" / "dangling" / "file").write_text("x" * 70)
    keeping(made, 1)
    before, files = taken(home.root), tree(home.root)
    foreseen = prune(made.shop, dry_run=True).data
    assert tree(home.root) == files
    done = prune(made.shop).data
    assert done == replace(foreseen, dry_run=False)
    assert kinds(done) == [
        ("orphan", "generations/demo/.2.repair"),
        ("orphan", "generations/demo/.9.pruned"),
        ("orphan", "envs/.demo.switching"),
        ("failed", "demo/3"),
        ("old", "demo/1"),
        ("orphan", "generations/gone/3"),
    ]
    assert cached(done) == {"attrs", "old", "leftovers of builds"}
    assert before - taken(home.root) == done.bytes == sum(each.bytes for each in done.removed)
    attrs = next(each for each in done.removed if each.what == "attrs")
    assert attrs.bytes > 11_000, "its last link goes"
    assert there(made) == (2,)
    assert there(made, "other") == (1,)
    assert sorted(path.name for path in home.generations_root.iterdir()) == ["demo", "other"]
    assert [each.snapshot for each in done.unrestorable] == ["demo/1.2", "demo/1.3"]
    assert [each.distributions for each in done.unrestorable] == [("attrs==1.0.0",), ("attrs==1.0.0", "old==1.0.0")]
    assert [each.built for each in done.unrestorable] == [(), ("old==1.0.0",)]
    assert not audit(made.shop, "demo", deep=True).exit
    assert not audit(made.shop, "other", deep=True).exit
    again = prune(made.shop).data
    assert (again.bytes, again.removed, again.unrestorable) == (0, (), ())


def test_what_stays_can_still_be_built_offline(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six"), step("old")])
    made.create([step("idna"), step("old")], again=True)
    made.create([step("attrs")], again=True)
    assert {"six"} <= cached(prune(keeping(made, 2).shop).data)
    server.forget()
    offline = made.offline()
    assert (rebuild(offline.shop, "demo").exit, made.installed()) == (0, {"attrs": "1.0.0"})
    result = rollback(offline.shop, "demo", "demo/2.1")
    assert (result.data.built, made.installed()) == (True, {"idna": "1.0.0"})
    assert not server.requests()


@pytest.mark.slow
def test_a_generation_that_is_gone_is_built_anew_from_its_records(tmp_path: Path, server: Server) -> None:
    """Offline too, while another environment holds the same; else the missing files are named."""
    made = house(tmp_path, server)
    made.create([step("six"), step("idna")])
    made.create([step("attrs")], again=True)
    made.create([step("six")], name="other")
    view = prune(keeping(made, 1).shop).data
    assert [each.snapshot for each in view.unrestorable] == ["demo/1.2"]
    offline = made.offline()
    with pytest.raises(EnvforgeError) as caught:
        rollback(offline.shop, "demo", "demo/1.2")
    assert caught.value.code == "not-cached"
    assert IDNA.filename in (caught.value.cause or "")
    assert SIX.filename not in (caught.value.cause or "")
    assert rollback(offline.shop, "demo", "demo/1.1").data.built
    assert made.installed() == {"six": "1.0.0"}
    assert rollback(made.shop, "demo", "demo/1.2").data.built
    assert made.installed() == {"six": "1.0.0", "idna": "1.0.0"}
    assert not audit(made.shop, "demo", deep=True).exit


def test_history_and_diff_still_tell(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    made.create([step("idna")], again=True)
    told = history(made.shop, "demo").data.generations[0]
    prune(keeping(made, 1).shop)
    now = history(made.shop, "demo").data.generations[0]
    assert now == replace(told, built=False, reason=now.reason)
    assert "pruned" in (now.reason or "")
    changes = diff(made.shop, "demo/1.1", "demo/2.1").data.changes
    assert {change.name for change in changes} == {"six", "idna"}
    assert Journal(made.shop.home.journal("demo", 1)).events()[-1].kind == "pruned"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "back", "stay"),
    [(1, None, (4,)), (2, None, (3, 4)), (2, 1, (1, 4)), (3, 2, (2, 3, 4)), (9, 1, (1, 2, 3, 4))],
)
def test_the_newest_that_were_in_use_stay_and_always_the_one_in_use(
    tmp_path: Path, server: Server, keep: int, back: int | None, stay: tuple[int, ...]
) -> None:
    made = house(tmp_path, server)
    for _ in range(4):
        made.create([step("six")], again=True)
    if back is not None:
        rollback(made.shop, "demo", f"demo/{back}")
    prune(keeping(made, keep).shop)
    assert there(made) == stay
    assert made.shop.home.current("demo") == (back or 4)


@pytest.mark.slow
def test_one_that_is_broken_takes_no_place(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    for _ in range(4):
        made.create([step("six")], again=True)
    (made.shop.home.prefix("demo", 3) / "bin" / "python").unlink()
    prune(keeping(made, 2).shop)
    assert there(made) == (2, 3, 4)
    assert rollback(made.shop, "demo").data.after == 2


def test_a_folder_that_is_gone_keeps_its_files_in_the_cache(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    shutil.rmtree(made.shop.home.prefix("demo", 1))
    assert "six" not in cached(prune(made.shop).data)
    assert rebuild(made.offline().shop, "demo").exit == 0


def test_an_interrupted_build_stays_until_it_is_not_the_newest(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    made.create([step("six"), step("idna")], again=True)
    home = made.shop.home
    rollback(made.shop, "demo")
    journal = home.journal("demo", 2)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if "switched" not in line))
    view = prune(keeping(made, 1).shop).data
    assert (there(made), [(each.what, "goes on" in each.why) for each in view.skipped]) == ((1, 2), [("demo/2", True)])
    assert "idna" not in cached(view)
    keeping(made, 9)
    continued = made.create([step("six"), step("idna")], again=True).data
    assert (continued.generation, continued.continued) == (2, "idna")


@pytest.mark.slow
def test_a_step_that_failed_is_not_gone_on_with_once_it_was_pruned(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    with pytest.raises(EnvforgeError):
        made.create([step("six"), {"name": "bad", "run": ["python", "-c", "raise SystemExit(7)"]}])
    assert kinds(prune(made.shop).data) == [("failed", "demo/1")]
    made.told.clear()
    built = made.create([step("six")]).data
    assert (built.generation, built.continued, notes(made)) == (2, None, "")


def test_what_is_used_stays_and_is_named_unless_that_is_known(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    made.create([step("idna")], again=True)
    keeping(made, 1)
    with using(made.shop.home.prefix("demo", 1)) as pid:
        for dry_run in (True, False):
            view = prune(made.shop, dry_run=dry_run).data
            assert [(each.what, [user.pid for user in each.processes]) for each in view.skipped] == [("demo/1", [pid])]
            assert (there(made), kinds(view), view.unrestorable) == ((1, 2), [], ())
        assert kinds(prune(made.shop, used=True).data) == [("old", "demo/1")]
        assert there(made) == (2,)


def test_a_damaged_journal_or_snapshot_is_no_licence(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    made.create([step("idna")], again=True)
    home = made.shop.home
    text = home.journal("demo", 1).read_text()
    home.journal("demo", 1).write_text("{\n" + text)
    view = prune(keeping(made, 1).shop).data
    assert (there(made), [each.what for each in view.skipped]) == ((1, 2), ["demo/1"])
    home.journal("demo", 1).write_text(text)
    place = snapshots.folder(home, "demo", 2) / "1.json"
    snapshot = place.read_text()
    place.write_text("{")
    view = prune(made.shop).data
    assert (there(made), [each.what for each in view.skipped], cached(view)) == ((2,), ["cache"], set())
    place.write_text(snapshot)
    assert "six" in cached(prune(made.shop).data)


def test_what_belongs_to_somebody_else_stays(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    home, elsewhere = made.shop.home, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1").mkdir()
    (home.generations_root / "linked").symlink_to(elsewhere)
    (home.generations_root / "demo" / "notes").mkdir()
    (home.generations_root / "demo" / "7").symlink_to(elsewhere)
    view = prune(made.shop).data
    assert ([each.what for each in view.skipped], kinds(view)) == (["linked"], [])
    assert (elsewhere / "1").is_dir()
    assert (home.generations_root / "demo" / "notes").is_dir()


def test_a_cache_outside_of_the_home_may_be_another_homes(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server, cache=tmp_path / "shared")
    made.create([step("six")])
    made.shop.home.link("demo").unlink()
    shutil.rmtree(made.shop.home.records_root / "demo")
    view = prune(made.shop).data
    assert ([each.what for each in view.skipped], kinds(view)) == (["cache"], [("orphan", "generations/demo/1")])


def test_a_cache_that_uv_does_not_let_go_of_stays_whole(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six", "attrs")])
    server.put("pypi", NEWER)
    made.create([{"name": "six", "install": ["six>=2"]}], again=True)
    cache = made.settings.cache
    with (cache / "uv" / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        before = tree(cache)
        view = prune(keeping(made, 1).shop).data
        assert ([each.what for each in view.skipped], kinds(view)) == (["cache"], [("old", "demo/1")])
        assert (cached(view), view.unrestorable, tree(cache)) == (set(), (), before)
        assert "another uv" in view.skipped[0].why
    assert cached(prune(made.shop).data) == {"six==1.0.0", "attrs"}


# -- superseded wheels of distributions that are held ------------------------------------------------------------------

NEWER = Wheel(name="six", version="2.0.0", files={"six/data.txt": "v" * 6000})


def superseded(made: House) -> None:
    """Two generations, with six 1.0.0 and then 2.0.0; one would stay."""
    made.create([step("six", "idna")])
    made.server.put("pypi", NEWER)
    made.update([{"name": "six", "install": ["six>=2"]}, step("idna")])
    keeping(made, 1)


def archives(made: House, text: str) -> list[Path]:
    """Where uv has unpacked a wheel with this in its data."""
    files = (made.settings.cache / "uv" / "archive-v0").glob("*/six/data.txt")
    return [file for file in files if file.read_text().startswith(text)]


@pytest.mark.slow
def test_a_superseded_wheel_goes_and_the_one_in_use_stays(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    superseded(made)
    home = made.shop.home
    before, files = taken(home.root), tree(home.root)
    foreseen = prune(made.shop, dry_run=True).data
    assert tree(home.root) == files
    done = prune(made.shop).data
    assert done == replace(foreseen, dry_run=False)
    assert (kinds(done), cached(done)) == ([("old", "demo/1")], {"six==1.0.0"})
    assert before - taken(home.root) == done.bytes > 5000
    assert [(each.snapshot, each.distributions) for each in done.unrestorable] == [("demo/1.1", ("six==1.0.0",))]
    assert (archives(made, "x"), len(archives(made, "v"))) == ([], 1)
    again = prune(made.shop).data
    assert (again.bytes, again.removed, again.unrestorable) == (0, (), ())
    server.forget()
    offline = made.offline()
    assert (rebuild(offline.shop, "demo").exit, made.installed()) == (0, {"six": "2.0.0", "idna": "1.0.0"})
    with pytest.raises(EnvforgeError) as caught:
        rollback(offline.shop, "demo", "demo/1.1")
    assert caught.value.code == "not-cached"
    assert SIX.filename in (caught.value.cause or "")
    assert not {NEWER.filename, IDNA.filename} & set((caught.value.cause or "").replace(",", " ").split())
    assert not server.requests()
    assert rollback(made.shop, "demo", "demo/1.1").data.built
    assert (made.installed()["six"], audit(made.shop, "demo", deep=True).exit) == ("1.0.0", 0)


@pytest.mark.slow
def test_a_version_that_any_environment_holds_stays(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")], name="other")
    superseded(made)
    view = prune(made.shop).data
    assert (kinds(view), cached(view), view.unrestorable) == ([("old", "demo/1")], set(), ())
    assert rollback(made.offline().shop, "demo", "demo/1.1").data.built
    assert made.installed()["six"] == "1.0.0"


@pytest.mark.slow
def test_another_file_of_the_same_version_goes_too(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    server.put("pypi", replace(SIX, build="1", files=NEWER.files))
    made.create([step("six")], again=True)
    view = prune(keeping(made, 1).shop).data
    assert (cached(view), archives(made, "x"), len(archives(made, "v"))) == ({"six==1.0.0"}, [], 1)
    assert [each.distributions for each in view.unrestorable] == [("six==1.0.0",)]
    assert rebuild(made.offline().shop, "demo").exit == 0


@pytest.mark.slow
def test_to_plan_a_superseded_version_again_takes_no_metadata(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    superseded(made)
    prune(made.shop)
    server.forget()
    (found,) = made.plan([{"name": "six", "install": ["six<2"]}]).steps
    assert [(change.name, change.after and change.after.version) for change in found.changes] == [("six", "1.0.0")]
    assert not [request for request in server.requests() if ".whl" in request.path]


def test_in_doubt_a_wheel_stays(tmp_path: Path, server: Server) -> None:
    """Where a kept file is not known, where uv does not say which file it was, and beside another uv's layout."""
    made = house(tmp_path, server)
    superseded(made)
    cache = made.settings.cache
    entry = next((cache / "uv").glob("wheels-v*/index/*/six/1.0.0-*.http"))
    held = Held(names=frozenset({"six", "idna", "pip", "setuptools"}), hashes=frozenset())

    def going(held: Held) -> set[str]:
        return {f"six=={wheel.version}" for wheel in surplus(cache, held).wheels if wheel.name == "six"}

    assert going(held) == {"six==1.0.0", "six==2.0.0"}
    assert going(replace(held, hashes=frozenset({sha256(NEWER)}))) == {"six==1.0.0"}
    assert going(replace(held, unknown=frozenset({("six", "1.0")}))) == {"six==2.0.0"}
    assert going(replace(held, unknown=frozenset({("six", "of old")}))) == set()
    text = entry.read_bytes()
    entry.write_bytes(text.replace(b"Sha256", b"Sha512"))
    assert going(held) == {"six==2.0.0"}
    entry.write_bytes(text)
    other = cache / "uv" / "wheels-v9"
    other.mkdir()
    view = prune(made.shop).data
    assert (kinds(view), cached(view), len(archives(made, "x"))) == ([("old", "demo/1")], set(), 1)
    assert not other.exists(), "uv takes away what it does not know, so the next prune sees clear"
    assert cached(prune(made.shop).data) == {"six==1.0.0"}


def sha256(wheel: Wheel) -> str:
    return hashlib.sha256(wheel.bytes()).hexdigest()


def test_a_version_too_long_for_its_entry_stays(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    server.put("pypi", Wheel(name="six", version=f"1.5+{'.'.join(['local'] * 12)}"))
    superseded(made)
    assert not cached(prune(made.shop).data)


def test_nothing_at_all(tmp_path: Path, server: Server) -> None:
    assert prune(house(tmp_path, server).shop).data == PruneView(dry_run=False, bytes=0)


@pytest.mark.slow
def test_what_cannot_be_removed_is_named_and_the_rest_goes(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = house(tmp_path, server)
    for _ in range(3):
        made.create([step("six")], again=True)
    monkeypatch.setattr(
        "envforge.forge.pruning.delete",
        lambda path: [f"{path}: permission denied"] if path.name == ".1.pruned" and path.exists() else delete(path),
    )
    with pytest.raises(LeftoverError) as caught:
        prune(keeping(made, 1).shop)
    assert (caught.value.exit, ".1.pruned" in (caught.value.cause or ""), there(made)) == (4, True, (3,))
    monkeypatch.undo()
    assert kinds(prune(made.shop).data) == [("orphan", "generations/demo/.1.pruned")]


def test_read_only_folders_go_too(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    made.create([step("six")])
    made.create([step("six")], again=True)
    for folder in (made.shop.home.prefix("demo", 1) / "bin", made.shop.home.prefix("demo", 1)):
        folder.chmod(0o555)
    prune(keeping(made, 1).shop)
    assert there(made) == (2,)


# -- by itself ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_generation_takes_the_place_of_the_oldest(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.create([step("six")])
    made.update([step("six"), step("idna")])
    rebuild(made.shop, "demo")
    assert (there(made), "removed" in notes(made)) == ((1, 2, 3), False)
    made.create([step("six")], again=True)
    assert there(made) == (2, 3, 4)
    assert "removed demo/1: only the newest 3 generations are kept" in notes(made)
    assert rollback(made.shop, "demo", "demo/1.1").data.built
    assert (there(made), made.installed()) == ((3, 4, 5), {"six": "1.0.0"})
    rollback(made.shop, "demo", "demo/3")
    made.update([step("six")])
    assert there(made) == (4, 5, 6)


@pytest.mark.slow
def test_one_that_is_used_is_named_and_failures_are_no_failure_of_the_build(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = House(tmp_path, server, keep_generations=1)
    made.create([step("six")])
    with using(made.shop.home.prefix("demo", 1)) as pid:
        assert made.create([step("six")], again=True).exit == 0
        assert (there(made), f"demo/1 stays, in use by process {pid}" in notes(made)) == ((1, 2), True)
    monkeypatch.setattr("envforge.forge.pruning.delete", lambda path: [f"{path}: denied"] if path.exists() else [])
    assert made.create([step("six")], again=True).exit == 0
    assert (made.shop.home.current("demo"), "could not be removed" in notes(made)) == (3, True)
    monkeypatch.undo()
    home = made.shop.home
    home.journal("demo", 2).write_text("{\n")
    made.told.clear()
    assert made.create([step("six")], again=True).exit == 0
    assert home.current("demo") == 4


def test_a_failed_build_removes_nothing(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server, keep_generations=1)
    made.create([step("six")])
    assert made.create([step("six")], again=True, smoke=[{"python": "raise SystemExit(1)"}]).exit == 3
    assert there(made) == (1, 2)


# -- two at once, and killed -------------------------------------------------------------------------------------------


def write(cli: Cli, server: Server, steps: list[Any]) -> None:
    cli.profile(server.url("pypi"), steps)


def wait(mark: Path, child: subprocess.Popen[str]) -> None:
    last = time.monotonic() + 60
    while not mark.exists():
        assert child.poll() is None, finish(child)
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.mark.slow
def test_while_something_is_built_neither_that_nor_the_cache_is_touched(tmp_path: Path, server: Server) -> None:
    mark, held = tmp_path / "mark", tmp_path / "hold"
    code = f"import os, time; open({str(mark)!r}, 'w').close()\nwhile os.path.exists({str(held)!r}): time.sleep(0.02)\n"
    cli = Cli(root=tmp_path, variables={"ENVFORGE_KEEP_GENERATIONS": "1"})
    write(cli, server, [step("six")])
    assert cli.run("create", "demo", "--name", "other").exit == 0
    write(cli, server, [step("idna"), {"name": "wait", "run": ["python", "-c", code]}])
    held.touch()
    child = cli.start("create", "demo")
    wait(mark, child)
    for arguments in (["prune", "--dry-run"], ["prune"]):
        answer = cli.run(*arguments)
        contract(answer)
        assert (answer.exit, answer.data["removed"]) == (0, []), str(answer)
        assert [each["what"] for each in answer.data["skipped"]] == ["demo", "cache"], str(answer)
        assert "envforge create" in answer.text
    held.unlink()
    assert finish(child).exit == 0
    assert cli.run("prune").data["skipped"] == []
    assert cli.run("audit", "demo", "--deep").exit == 0


@pytest.mark.slow
def test_killed_in_the_middle_of_removing_the_next_one_finishes(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path, variables={"ENVFORGE_KEEP_GENERATIONS": "9"})
    write(cli, server, [step("six")])
    for _ in range(2):
        assert cli.run("create", "demo", "--replace").exit == 0
    many = cli.home / "generations/demo/1/many"
    many.mkdir()
    for number in range(20_000):
        (many / str(number)).touch()
    few = Cli(root=tmp_path, variables={"ENVFORGE_KEEP_GENERATIONS": "1"})
    child = few.start("prune")
    aside = cli.home / "generations/demo/.1.pruned"
    wait(aside, child)
    child.send_signal(signal.SIGKILL)
    finish(child)
    assert not (cli.home / "generations/demo/1").exists()
    assert os.path.basename(os.readlink(cli.link())) == "2"  # noqa: PTH115, PTH119 - the text of the link
    assert cli.run("audit", "demo", "--deep").exit == 0
    answer = few.run("prune")
    contract(answer)
    assert [each["what"] for each in answer.data["removed"] if each["kind"] != "cache"] == [
        "generations/demo/.1.pruned"
    ]
    assert not aside.exists()
    assert cli.run("history", "demo").data["generations"][0]["verdict"] == "conforms"


def test_what_a_killed_repair_left_goes_once_its_lock_is_free(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path)
    write(cli, server, [step("six")])
    assert cli.run("create", "demo").exit == 0
    (cli.link() / "bin/activate").unlink()
    shutil.rmtree(cli.site() / "six")
    shutil.rmtree(cli.home / "cache/uv")
    site = server.shelves["pypi"].site
    site.faults = [Fault(file="six-*.whl", hang=True)]
    server.forget()
    child = cli.start("repair", "demo")
    beside = cli.home / "generations/demo/.1.repair"
    wait(beside, child)
    server.wait_for("file", "six-*.whl")
    answer = cli.run("prune")
    assert [each["what"] for each in answer.data["skipped"]] == ["demo", "cache"], str(answer)
    assert beside.is_dir()
    child.send_signal(signal.SIGKILL)
    finish(child)
    answer = cli.run("prune")
    contract(answer)
    orphans = [each["what"] for each in answer.data["removed"] if each["kind"] == "orphan"]
    assert (orphans, beside.exists()) == (["generations/demo/.1.repair"], False), str(answer)
    site.faults = ()
    assert cli.run("repair", "demo").exit == 0
    assert cli.run("audit", "demo", "--deep").exit == 0


def test_the_cache_lock(tmp_path: Path) -> None:
    with locking.claim(tmp_path / "none") as alone:
        assert not alone
    with (
        locking.share(tmp_path / "cache"),
        locking.share(tmp_path / "cache"),
        locking.claim(tmp_path / "cache") as alone,
    ):
        assert not alone
    with locking.claim(tmp_path / "cache") as alone:
        assert alone
