from __future__ import annotations

from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.history import generation, history
from envforge.store.journal import Journal


def test_every_step_tells_what_it_changed_opened_and_healed(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    (record,) = history(shop, "small").data.generations
    assert (record.current, record.built, record.verdict, record.profile) == (True, True, "conforms", "small")
    base, pin = record.steps
    assert (base.snapshot, pin.snapshot) == ("small/1.1", "small/1.2")
    assert [finding.key for finding in base.opens] == [("hold-violated", "six")]
    assert pin.heals == (("hold-violated", "six"),)
    assert str(pin.changes[0].because) == "the step asks for six<2"


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ((), "unfinished"),
        (("started",), "unfinished"),
        (("started", "failed"), "failed"),
        (("started", "interrupted", "resumed"), "unfinished"),
        (("started", "interrupted", "abandoned"), "abandoned"),
        (("started", "interrupted", "resumed", "switched"), "conforms"),
        (("started", "finished", "switched"), "conforms"),
    ],
)
def test_the_verdict_follows_from_what_came_last(tmp_path: Path, events: tuple[str, ...], verdict: str) -> None:
    shop = small_home.shop(tmp_path)
    journal = Journal(shop.home.journal("e", 1))
    journal.path.parent.mkdir(parents=True)
    for kind in events:
        journal.append(kind)
    assert generation(shop.home, "e", 1).verdict == verdict


def test_a_failure_names_its_step_and_reason(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    journal = Journal(shop.home.journal("e", 1))
    journal.append("started")
    journal.append("step-started", step=1, name="torch")
    journal.append("failed", message="no such package", cause="index `pypi`")
    record = generation(shop.home, "e", 1)
    assert record.verdict == "failed at torch"
    assert record.reason == "no such package: index `pypi`"


def test_what_kept_a_build_from_being_used(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    journal = Journal(shop.home.journal("e", 1))
    journal.append("started")
    journal.append("failed", findings=["smoke-failed import six"])
    record = generation(shop.home, "e", 1)
    assert (record.verdict, record.reason) == ("1 finding", "smoke-failed import six")


@pytest.mark.parametrize("line", ["{", '{"kind": "step-finished", "at": "x", "data": {"step": 1}}', "[]"])
def test_a_damaged_journal_is_told_and_not_raised(tmp_path: Path, line: str) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    path = shop.home.journal("small", 1)
    path.write_text(path.read_text() + line + "\n")
    (record,) = history(shop, "small").data.generations
    assert record.verdict == "unreadable"
    assert str(path) in (record.problem or "")
