"""Today's state as a snapshot: what is taken, what stands in the way, and what a fresh build would not bring."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from engines.house import House
from forge.by_hand import add, call, stamps
from kit.check import contract
from kit.cli import Answer, Cli
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.engines import uv
from envforge.forge import launching
from envforge.forge.accept import accept
from envforge.forge.audit import audit
from envforge.forge.history import history
from envforge.forge.listing import listing
from envforge.forge.rebuild import rebuild
from envforge.forge.rollback import rollback
from envforge.forge.show import show
from envforge.model.drift import Accepted, NotReproducible
from envforge.model.errors import EnvforgeError
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.store import contents, snapshots

SIX = Wheel(name="six", version="1.0.0", files={"six/more.py": "more = 1\n", "six/data.txt": "data\n"})
SEVEN = Wheel(name="six", version="2.0.0")
DEP = Wheel(name="dep", version="1.0.0", scripts={"dep": "dep:main"})
LIAR = Wheel(name="liar", version="1.0.0", record="wrong")
IDNA = Wheel(name="idna", version="1.0.0", files={"idna/core.py": "core = 1\n"})
STEPS = [{"name": "all", "install": ["six<2", "dep", "liar"]}]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with serve({"pypi": Index(artefacts=[SIX, DEP, LIAR])}) as server:
        yield House(tmp_path, server, link_mode="copy")


def built(house: House, **more: Any) -> Path:
    """The prefix of `demo`, which holds the kit's distributions."""
    assert house.create(STEPS, **more).exit == 0
    return house.shop.home.prefix("demo", 1)


def errors(result: Result[Any]) -> set[tuple[str, str]]:
    return {(each.id, each.subject) for each in result.findings if each.severity == "error"}


def warnings(result: Result[Any]) -> set[tuple[str, str]]:
    found = {(each.id, each.subject) for each in result.findings if each.severity == "warning"}
    return {each for each in found if each[0] in {"file-modified", "file-missing"}}


def refused(house: House, *wanted: tuple[str, str]) -> Result[Accepted]:
    """It is not accepted, for exactly these reasons, and nothing is written."""
    folder = snapshots.folder(house.shop.home, "demo", 1)
    journal = house.shop.home.journal("demo", 1).read_bytes()
    before = stamps(folder)
    result = accept(house.shop, "demo")
    assert errors(result) == set(wanted)
    assert (result.exit, result.data.snapshot) == (3, None)
    assert stamps(folder) == before
    assert house.shop.home.journal("demo", 1).read_bytes() == journal
    return result


def uninstall(prefix: Path, *names: str) -> None:
    call([uv.binary(), "pip", "uninstall", "-q", "--python", str(prefix / "bin/python"), *names])


def test_nothing_drifted_nothing_written(house: House) -> None:
    built(house)
    result = accept(house.shop, "demo")
    assert (result.exit, result.data.snapshot) == (0, None)
    assert snapshots.numbers(house.shop.home, "demo", 1) == (0, 1)


def test_what_is_there_is_recorded_and_later_audits_go_by_it(house: House) -> None:
    prefix = built(house)
    home = house.shop.home
    add(prefix, IDNA)
    (house.site() / "dep/__init__.py").write_text("patched = 1\n")
    (house.site() / "six/data.txt").unlink()
    (house.site() / "six/data.txt").write_text("data\n")  # the same bytes: no drift
    (prefix / "notes.txt").write_text("mine\n")
    before = stamps(prefix)
    assert errors(audit(house.shop, "demo")) == {("package-extra", "idna"), ("file-modified", "dep")}

    result = accept(house.shop, "demo")
    assert (errors(result), warnings(result)) == (set(), {("file-modified", "dep")})
    assert result.data.snapshot == "demo/1.2"
    assert [(change.name, change.before) for change in result.data.changes] == [("idna", None)]
    assert result.data.files == 1
    patched = next(str(path) for path in [(house.site() / "dep/__init__.py").relative_to(prefix.resolve())])
    assert result.data.not_reproducible == NotReproducible(
        distributions=("idna 1.0.0",), files=(patched,), unowned=("notes.txt",)
    )
    assert stamps(prefix) == before

    for deep in (False, True):
        assert errors(audit(house.shop, "demo", deep=deep)) == set()
    assert accept(house.shop, "demo").data.snapshot is None
    taken = snapshots.read(home, "demo", 1, 2, files=True)
    row = next(row for row in taken.files if row.path == patched)
    assert contents.path(home, "demo", 1, row.sha256 or "").read_bytes() == b"patched = 1\n"
    assert taken.state["six"].sha256 is not None
    assert taken.state["idna"].sha256 is None
    text = snapshots.lock_path(home, "demo", 1, 2).read_text()
    assert '"idna==1.0.0"' in text
    assert 'name = "six"' in text

    (house.site() / "dep/__init__.py").write_text("patched = 2\n")
    (house.site() / "idna/core.py").write_text("core = 2\n")
    assert errors(audit(house.shop, "demo")) == {("file-modified", "dep"), ("file-modified", "idna")}


@pytest.mark.slow
def test_it_has_its_place_in_the_history_and_is_undone_by_a_rebuild_or_rollback(house: House) -> None:
    prefix = built(house)
    add(prefix, IDNA)
    assert accept(house.shop, "demo").exit == 0
    told = show(house.shop, "demo").data
    assert told.built is not None
    assert (told.verdict, told.restorable, told.steps) == ("conforms", False, ("all", "accepted"))
    assert told.built.made == snapshots.read(house.shop.home, "demo", 1, 1).made
    entry = history(house.shop, "demo").data.generations[0].steps[-1]
    assert (entry.name, entry.action, entry.snapshot) == ("accepted", "accept", "demo/1.2")
    assert [change.name for change in entry.changes] == ["idna"]
    assert listing(house.shop).data.environments[0].verdict == "conforms"

    assert rebuild(house.shop, "demo").exit == 0
    assert "is not built again: no step made it" in " ".join(each.text for each in house.told if isinstance(each, Note))
    assert "idna" not in house.installed()
    assert rollback(house.shop, "demo").data.after == 1
    assert "idna" in house.installed()
    assert rollback(house.shop, "demo", "demo/1.1").data.built is True
    assert "idna" not in house.installed()
    assert rollback(house.shop, "demo", "demo/1.2").data.built is False
    assert "idna" in house.installed()
    shutil.rmtree(prefix)
    with pytest.raises(EnvforgeError) as caught:
        rollback(house.shop, "demo", "demo/1.2")
    assert caught.value.code == "not-restorable"


@pytest.mark.slow
def test_what_a_build_would_bring_otherwise_adds_up_and_goes_again(house: House) -> None:
    prefix = built(house)
    original = (house.site() / "dep/__init__.py").read_bytes()
    (house.site() / "dep/__init__.py").write_text("patched = 1\n")
    assert accept(house.shop, "demo").exit == 0
    uninstall(prefix, "six")
    second = accept(house.shop, "demo").data
    assert (second.snapshot, second.not_reproducible.removed) == ("demo/1.3", ("six 1.0.0",))
    assert [path.rpartition("/")[2] for path in second.not_reproducible.files] == ["__init__.py"]
    add(prefix, SIX)
    (house.site() / "dep/__init__.py").write_bytes(original)
    third = accept(house.shop, "demo")
    assert (third.data.snapshot, warnings(third)) == ("demo/1.4", set())
    assert third.data.not_reproducible == NotReproducible()
    assert snapshots.read(house.shop.home, "demo", 1, 4).state["six"].sha256 is not None
    assert errors(audit(house.shop, "demo", deep=True)) == set()


@pytest.mark.slow
def test_guards_debris_and_code_of_nobody_stand_in_the_way(house: House) -> None:
    prefix = built(house, guards=[{"hold": "six<2"}, {"keep": ["dep"]}])
    add(prefix, SEVEN)
    refused(house, ("hold-violated", "six"))
    add(prefix, SIX, Wheel(name="dep", version="1.0.0", files={"dep/more.py": ""}))
    refused(house, ("kept-package-changed", "dep"))
    add(prefix, DEP, IDNA)
    (house.site() / "evil.pth").write_text("import os\n")
    (house.site() / "~dep").mkdir()
    refused(
        house, ("file-unowned", str((house.site() / "evil.pth").relative_to(prefix.resolve()))), ("leftover", "~dep")
    )
    (house.site() / "evil.pth").unlink()
    (house.site() / "~dep").rmdir()
    assert accept(house.shop, "demo").exit == 0


@pytest.mark.slow
def test_a_partial_distribution_is_refused_and_one_that_is_ignored_is_not(house: House) -> None:
    built(house)
    (house.site() / "six/more.py").unlink()
    refused(house, ("file-missing", "six"))
    house.create(STEPS, again=True, ignore=[{"id": "file-missing", "subject": "six"}])
    (house.site() / "six/more.py").unlink()
    assert accept(house.shop, "demo").data.snapshot == "demo/2.2"
    assert errors(audit(house.shop, "demo")) == set()


def test_without_its_python_it_is_refused(house: House) -> None:
    prefix = built(house)
    (prefix / "bin/python").unlink()
    refused(house, ("file-missing", "bin/python"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_nobody_can_read_is_refused(house: House) -> None:
    prefix = built(house)
    add(prefix, IDNA)
    file = house.site() / "idna/core.py"
    file.chmod(0)
    assert {each[0] for each in errors(accept(house.shop, "demo"))} == {"file-modified"}
    assert snapshots.numbers(house.shop.home, "demo", 1) == (0, 1)


@pytest.mark.slow
def test_a_record_that_lied_from_the_start_is_no_news(house: House) -> None:
    prefix = built(house)
    assert errors(audit(house.shop, "demo", deep=True)) == set()
    (house.site() / "liar/data.txt").write_text("beside it\n")
    add(prefix, IDNA)
    result = accept(house.shop, "demo")
    assert warnings(result) == set()
    assert result.data.not_reproducible.files == ()
    assert errors(audit(house.shop, "demo", deep=True)) == set()
    (house.site() / "liar/__init__.py").write_text("other = 1\n")
    assert errors(audit(house.shop, "demo", deep=True)) == {("file-modified", "liar")}


def run(cli: Cli, words: Sequence[str], status: int) -> Answer:
    answer = cli.run(*words)
    contract(answer)
    assert answer.exit == status, str(answer)
    return answer


@pytest.mark.slow
def test_the_command_says_it_to_a_script(house: House) -> None:
    cli = Cli(root=house.root)
    prefix = built(house)
    add(prefix, IDNA)
    answer = run(cli, ["accept", "demo"], 0)
    assert answer.data["snapshot"] == "demo/1.2"
    assert answer.data["not_reproducible"]["distributions"] == ["idna 1.0.0"]
    assert answer.data["changes"][0]["to"] == "1.0.0"
    assert launching.changed(house.shop.home, "demo", 1, prefix) == ""
    run(cli, ["audit", "demo"], 0)
    (house.site() / "idna/core.py").unlink()
    run(cli, ["accept", "demo"], 3)
    run(cli, ["accept", "nothing"], 2)
