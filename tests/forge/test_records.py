"""Damaged records: who only looks names them; who changes the environment moves them aside and goes on."""

from __future__ import annotations

import copy
import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from engines.house import House
from forge import small_home
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.forge.audit import audit, audit_all
from envforge.forge.diff import diff
from envforge.forge.history import history
from envforge.forge.listing import listing
from envforge.forge.path import path
from envforge.forge.rebuild import rebuild
from envforge.forge.rollback import rollback
from envforge.forge.shop import Shop
from envforge.forge.show import show
from envforge.forge.trust import Recorded
from envforge.model.errors import EnvforgeError
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.model.state import FileRow
from envforge.report.console import render
from envforge.report.json import envelope
from envforge.store import snapshots
from envforge.store.journal import Journal
from envforge.system import http

READERS: Mapping[str, Callable[[Shop], Result[Any]]] = {
    "list": listing,
    "show": lambda shop: show(shop, "small"),
    "path": lambda shop: path(shop, "small"),
    "history": lambda shop: history(shop, "small"),
    "diff": lambda shop: diff(shop, "small"),
    "diff of two": lambda shop: diff(shop, "small/1.1", "small/1.2"),
    "audit": lambda shop: audit(shop, "small"),
    "audit of all": audit_all,
}
NAMED_BY = {
    "journal.jsonl": {"show", "history", "audit", "audit of all"},
    "profile.yaml": {"show", "audit", "audit of all"},
    "snapshots/2.json": {"show", "diff", "diff of two", "audit", "audit of all"},
    "snapshots/1.json": {"diff of two", "audit", "audit of all"},
    "snapshots/2.files.json": {"audit", "audit of all"},
}


def garbage(place: Path) -> None:
    place.write_bytes(b"\x00\xff\xfe" * 30 + b"\n")


def truncated(place: Path) -> None:
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2] + b"\n")


def another_shape(place: Path) -> None:
    place.write_text('["schema", 1]\n')


def nested(place: Path) -> None:
    place.write_text("[" * 100_000 + "\n")


def folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


def pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def nowhere(place: Path) -> None:
    place.unlink()
    place.symlink_to("nowhere")


DAMAGES = [garbage, truncated, another_shape, nested, folder, pipe, nowhere]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("HOME", str(tmp_path))
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    return shop


def outcome(shop: Shop, verb: str) -> tuple[str, str | None]:
    """All that a verb says, and the code of the error that it ends with; nothing else may be raised."""
    try:
        result = READERS[verb](shop)
    except EnvforgeError as error:
        return f"{error.message}\n{error.cause}", error.code
    text = envelope(result, verb)
    if verb != "path":
        render(result, width=100, color=False, verbose=True, program="envforge")
    return text, None


@pytest.mark.parametrize("file", NAMED_BY)
def test_readers_name_what_they_cannot_read(shop: Shop, file: str) -> None:
    place = shop.home.record("small", 1) / file
    content = place.read_bytes()
    for damage in DAMAGES:
        damage(place)
        for verb in READERS:
            said, code = outcome(shop, verb)
            assert code in {None, "corrupt-record"}, (damage, verb, said)
            # Half a profile may be one, with fewer steps.
            if verb in NAMED_BY[file] and not (file == "profile.yaml" and damage is truncated):
                assert str(place) in said, (damage, verb, said)
        place.rmdir() if place.is_dir() else place.unlink()
        place.write_bytes(content)


@pytest.mark.parametrize("file", ["profile.yaml", "snapshots/2.json", "snapshots/2.files.json"])
def test_what_a_newer_envforge_wrote_ends_with_wrong_usage_and_stays(shop: Shop, file: str) -> None:
    place = shop.home.record("small", 1) / file
    text = place.read_text().replace('"schema": 1', '"schema": 99').replace("schema: 1", "schema: 99")
    place.write_text(text)
    for verb in NAMED_BY[file]:
        said, code = outcome(shop, verb)
        assert code == "newer-record", (verb, said)
        assert str(place) in said
    assert place.read_text() == text


def wrong(document: Any) -> Iterator[Any]:
    """The document with one value of another type, for every place in it."""
    for way in list(places(document)):
        for value in (5, [1]):
            other = copy.deepcopy(document)
            inner = other
            for key in way[:-1]:
                inner = inner[key]
            inner[way[-1]] = value
            yield other


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, entry in inside:
        yield from places(entry, (*way, key))


@pytest.mark.parametrize("file", ["snapshots/2.json", "snapshots/1.json", "snapshots/2.files.json", "journal.jsonl"])
def test_no_value_of_another_type_is_a_fault_of_envforge(shop: Shop, file: str) -> None:
    place = shop.home.record("small", 1) / file
    journal = file == "journal.jsonl"
    lines = place.read_text().splitlines() if journal else [place.read_text()]
    number = 2 if journal else 0
    for other in wrong(json.loads(lines[number])):
        place.write_text("\n".join([*lines[:number], json.dumps(other), *lines[number + 1 :]]) + "\n")
        for verb in {"history"} if journal else {"diff", "diff of two", "audit"} & NAMED_BY[file]:
            outcome(shop, verb)


# -- what changes the environment --------------------------------------------------------------------------------------

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
STEP = {"name": "six", "install": ["six"]}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """Two generations, six 1.0.0 and six 2.0.0, the second in use."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        house = House(tmp_path, server)
        house.create([STEP])
        server.put("pypi", SEVEN)
        house.create([STEP], again=True)
        house.told.clear()
        yield house


def notes(made: House) -> str:
    return "\n".join(each.text for each in made.told if isinstance(each, Note))


def quarantined(made: House, generation: int) -> list[str]:
    place = made.shop.home.record("demo", generation) / "quarantine"
    return sorted(each.name for each in place.iterdir()) if place.is_dir() else []


def test_a_damaged_journal_is_begun_anew(made: House) -> None:
    home = made.shop.home
    folder(home.journal("demo", 1))
    garbage(home.journal("demo", 2))
    built = rebuild(made.shop, "demo")
    assert (built.exit, built.data.generation, made.installed()) == (0, 3, {"six": "2.0.0"})
    assert quarantined(made, 1) == quarantined(made, 2) == ["journal.jsonl.1"]
    assert f"moved to `{home.record('demo', 2)}/quarantine/journal.jsonl.1`" in notes(made)
    assert Journal(home.journal("demo", 2)).events()[0].kind == "quarantined"
    assert home.prefix("demo", 2).is_dir(), "nobody can say that it never was in use"


def test_what_can_be_read_of_a_damaged_journal_counts(made: House) -> None:
    journal = made.shop.home.journal("demo", 1)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([lines[0], "half a li\n", *lines[1:]]))
    assert rollback(made.shop, "demo").data.after == 1
    assert made.installed() == {"six": "1.0.0"}
    kinds = [event.kind for event in Journal(journal).events()]
    assert kinds[0] == "started"
    assert kinds[-3:] == ["switched", "quarantined", "switched"]
    assert "half a li" in (journal.parent / "quarantine" / "journal.jsonl.1").read_text()


@pytest.mark.parametrize("verb", ["create", "update"])
def test_what_is_not_needed_is_set_aside(made: House, verb: str) -> None:
    record = made.shop.home.record("demo", 2)
    for file in ("journal.jsonl", "profile.yaml", "snapshots/0.json", "snapshots/1.json"):
        garbage(record / file)
    (record / "seen.json").mkdir()
    if verb == "create":
        assert made.create([STEP], again=True).data.generation == 3
    else:
        source = json.dumps({"kind": "started", "at": "", "data": {"source": str(made.folder / "demo.yaml")}})
        (record / "journal.jsonl").write_bytes(source.encode() + b"\n\xff\n")
        assert made.update([STEP]).data.generation == 3
    assert quarantined(made, 2) == ["0.json.1", "1.json.1", "journal.jsonl.1", "profile.yaml.1", "seen.json.1"]
    garbage(record / "profile.yaml")
    home = made.shop.home
    home.switch("demo", 2)
    made.create([STEP], again=True)
    assert "profile.yaml.2" in quarantined(made, 2)


def test_what_is_needed_and_what_is_newer_stays(made: House) -> None:
    record = made.shop.home.record("demo", 2)
    snapshot = record / "snapshots/1.json"
    text = snapshot.read_text()
    garbage(snapshot)
    with pytest.raises(EnvforgeError) as caught:
        rebuild(made.shop, "demo")
    assert (caught.value.code, quarantined(made, 2)) == ("corrupt-record", [])
    snapshot.write_text(text.replace('"schema": 1', '"schema": 7'))
    with pytest.raises(EnvforgeError) as caught:
        rebuild(made.shop, "demo")
    assert (caught.value.code, caught.value.exit) == ("newer-record", 2)
    assert made.create([STEP], again=True).exit == 0
    assert quarantined(made, 2) == []
    assert '"schema": 7' in snapshot.read_text()


def test_without_its_table_of_files_a_lock_still_restores(made: House) -> None:
    record = made.shop.home.record("demo", 2)
    garbage(record / "snapshots/1.files.json")
    assert rebuild(made.shop, "demo").exit == 0
    assert quarantined(made, 2) == ["1.files.json.1"]
    # Nor does a damaged record of a neighbour hide that a program wrote into what both share.
    made.create([STEP], name="other")
    garbage(snapshots.table_path(made.shop.home, "other", 1, 1))
    edit = "import six; open(six.__file__, 'a').write('x = 1\\n')"
    with pytest.raises(EnvforgeError) as caught:
        made.create([STEP, {"name": "edit", "run": ["python", "-c", edit]}], again=True)
    assert caught.value.code == "shared-file-written"


def test_kept_content_that_is_another_is_not_taken(shop: Shop) -> None:
    digest = "0" * 64
    row = FileRow(path="bin/x", size=5, mtime=0, inode=0, sha256=digest)
    recorded = Recorded(home=shop.home, name="small", generation=1, rows={row.path: row})
    assert recorded.content(row.path, Path("/new")) is None
    place = shop.home.record("small", 1) / "contents"
    place.mkdir()
    (place / digest).write_text("other")
    assert recorded.content(row.path, Path("/new")) is None
