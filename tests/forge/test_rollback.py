"""A rollback finds the generation that can be used again, or builds the state of a step; the rest it says no to."""

from __future__ import annotations

import shutil
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from engines.house import House, versions
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.forge import generations
from envforge.forge.rebuild import rebuild
from envforge.forge.rollback import rollback
from envforge.model.drift import Switch
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.profiles import loader
from envforge.store import profiles, snapshots
from envforge.store.journal import Journal
from envforge.store.layout import Home
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0")
STEP = {"name": "six", "install": ["six"]}
NEXT = {"name": "idna", "install": ["idna"]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def moved(result: Result[Switch]) -> tuple[int | None, int, bool, list[str]]:
    data = result.data
    changes = [
        f"{each.name} {each.before and each.before.version} {each.after and each.after.version}"
        for each in data.changes
    ]
    return data.before, data.after, data.built, changes


def refused(made: House, snapshot: str | None = None) -> EnvforgeError:
    current = made.shop.home.current("demo")
    with pytest.raises(EnvforgeError) as caught:
        rollback(made.shop, "demo", snapshot)
    assert made.shop.home.current("demo") == current
    return caught.value


def three(made: House) -> None:
    """Generations with six 1.0.0; six 2.0.0; six 2.0.0 and idna."""
    made.create([STEP])
    made.server.put("pypi", SEVEN)
    made.create([STEP], again=True)
    made.create([STEP, NEXT], again=True)


def test_back_further_back_and_forth(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        three(made)
        home = made.shop.home
        server.forget()
        assert moved(rollback(made.shop, "demo")) == (3, 2, False, ["idna 1.0.0 None"])
        assert Journal(home.journal("demo", 2)).events()[-1].data == {"rollback": True}
        assert moved(rollback(made.shop, "demo")) == (2, 1, False, ["six 2.0.0 1.0.0"])
        assert made.installed() == {"six": "1.0.0"}
        assert refused(made).code == "no-earlier-generation"
        assert moved(rollback(made.shop, "demo", "demo/3"))[:3] == (1, 3, False)
        assert moved(rollback(made.shop, "demo", "demo/3")) == (3, 3, False, [])
        assert moved(rollback(made.shop, "demo", "demo/1.1"))[:3] == (3, 1, False)
        assert not server.requests()
        assert made.update([STEP]).data.generation == 4
        assert made.installed() == {"six": "1.0.0"}, "the lock of the generation in use"


@pytest.mark.slow
def test_what_was_never_in_use_is_passed_over(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        assert made.create([STEP], again=True, smoke=[{"python": "assert False"}]).exit == 3
        made.create([STEP, NEXT], again=True)
        assert refused(made, "demo/2").code == "generation-unproven"
        assert moved(rollback(made.shop, "demo"))[:2] == (3, 1)


def test_a_switch_that_was_killed_before_it_was_written_down(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        journal = made.shop.home.journal("demo", 1)
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:-1]))
        made.create([STEP], again=True)
        assert moved(rollback(made.shop, "demo"))[:2] == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["folder", "python", "distribution", "snapshot", "journal"])
def test_a_generation_that_is_no_longer_whole(tmp_path: Path, what: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        three(made)
        home = made.shop.home
        prefix = home.prefix("demo", 2)
        if what == "folder":
            shutil.rmtree(prefix)
        elif what == "python":
            (prefix / "bin/python").unlink()
        elif what == "distribution":
            shutil.rmtree(next(prefix.glob("lib/python*/site-packages/six-*.dist-info")))
        elif what == "snapshot":
            (snapshots.folder(home, "demo", 2) / "1.json").write_text("{")
        else:
            home.journal("demo", 2).write_text("{\n{\n")
        code = refused(made, "demo/2").code
        assert code == {"folder": "generation-missing", "journal": "generation-unproven"}.get(what, "generation-broken")
        if what in {"folder", "python", "distribution"}:
            assert moved(rollback(made.shop, "demo", "demo/2.1")) == (3, 4, True, ["idna 1.0.0 None"])
            rollback(made.shop, "demo", "demo/3")
        assert moved(rollback(made.shop, "demo"))[:2] == (3, 1), "the next that can be used"


def test_a_snapshot_that_no_step_made(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        home = made.shop.home
        last = snapshots.read(home, "demo", 1, 1, files=True)
        snapshots.write(home, replace(last, step=2, step_name=None), None)
        assert moved(rollback(made.shop, "demo", "demo/1.2"))[:3] == (1, 1, False), "the end of a whole generation"
        rebuild(made.shop, "demo")
        assert any("is not built again: no step made it" in each.text for each in made.told if isinstance(each, Note))
        shutil.rmtree(home.prefix("demo", 1))
        assert refused(made, "demo/1.2").code == "not-restorable"
        assert moved(rollback(made.shop, "demo", "demo/1.1"))[:3] == (2, 3, True)


@pytest.mark.slow
def test_none_that_can_be_used(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        three(made)
        for number in (1, 2):
            shutil.rmtree(made.shop.home.prefix("demo", number))
        error = refused(made)
        assert error.code == "no-earlier-generation"
        assert error.cause == "generation 2: its folder is gone\ngeneration 1: its folder is gone"
        assert "`envforge rollback demo demo/2.1`" in (error.hint or "")


@pytest.mark.slow
def test_away_from_a_generation_that_is_gone(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        three(made)
        home = made.shop.home
        shutil.rmtree(home.prefix("demo", 3))
        (snapshots.folder(home, "demo", 3) / "2.json").write_text("{")
        assert home.current("demo") is None
        assert moved(rollback(made.shop, "demo")) == (3, 2, False, [])
        assert any("what differs is not known" in each.text for each in made.told if isinstance(each, Note))


def test_to_the_state_after_a_step(tmp_path: Path) -> None:
    pin = {"name": "pin", "pin": ["six<2"]}
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP, NEXT, pin])
        server.put("pypi", Wheel(name="six", version="3.0.0"))
        built = rollback(made.offline().shop, "demo", "demo/1.2")
        assert (built.exit, built.data.snapshot, built.data.switched) == (0, "demo/1.2", True)
        assert moved(built) == (1, 2, True, ["six 1.0.0 2.0.0"])
        home = made.shop.home
        states = [snapshots.read(home, "demo", number, 2).state for number in (1, 2)]
        assert versions(states[0]) == versions(states[1]) == made.installed()
        assert [states[0][name].contents for name in states[0]] == [states[1][name].contents for name in states[0]]
        cut = loader.loads(profiles.text(home, "demo", 2), "record")
        assert [step.name for step in cut.steps] == ["six", "idna"]
        assert moved(rollback(made.shop, "demo", "demo/1.0"))[1:3] == (3, True)
        assert made.installed() == {}
        assert made.update([STEP, NEXT, pin]).exit == 0, "the file that it was built from is still known"


@pytest.mark.slow
def test_to_the_state_after_a_step_that_does_not_hold(tmp_path: Path) -> None:
    pin = {"name": "pin", "pin": ["six<2"]}
    with serve({"pypi": Index(artefacts=[SIX, SEVEN])}) as server:
        made = House(tmp_path, server)
        assert made.create([STEP, pin], guards=[{"hold": "six<2"}]).exit == 0
        answer = rollback(made.shop, "demo", "demo/1.1")
        assert (answer.exit, answer.data.switched, answer.data.after) == (3, False, 0)
        assert made.shop.home.current("demo") == 1
        made.create(
            [STEP, pin], again=True, smoke=[{"python": "import importlib.metadata as m; assert m.version('six') < '2'"}]
        )
        # The check proves what the pin brought: it says nothing of the step before.
        answer = rollback(made.shop, "demo", "demo/2.1")
        assert (answer.exit, answer.data.switched, answer.data.after) == (0, True, 3)


@pytest.mark.parametrize(
    ("snapshot", "code"),
    [
        ("other/1.1", "invalid-name"),
        ("1.1", "invalid-name"),
        ("demo", "invalid-name"),
        ("demo/0", "invalid-name"),
        ("demo/9", "generation-missing"),
        ("demo/1.9", "snapshot-not-found"),
        ("demo/9.1", "snapshot-not-found"),
    ],
)
def test_what_is_no_snapshot_of_it(tmp_path: Path, snapshot: str, code: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        error = refused(made, snapshot)
        assert error.code == code
        assert isinstance(error, UsageError) == (code == "invalid-name")


def test_names_of_distributions_in_the_listing(tmp_path: Path) -> None:
    """One that begins as another does is not taken for it."""
    there = sorted(["foo-bar-1.0", "foo", "baz-2.0"])
    assert [name for name in ("foo", "foo-bar", "ba", "baz", "qux") if generations._listed(name, there)] == [
        "foo", "foo-bar", "baz",
    ]  # fmt: skip
    assert generations.linked(Home(tmp_path, tmp_path), "demo") is None
