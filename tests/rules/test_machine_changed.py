from __future__ import annotations

import pytest

from envforge.model.finding import Severity
from envforge.model.machine import Card, Machine
from envforge.model.snapshot import BuiltFor, Snapshot
from envforge.rules.machine_changed import machine_changed


def card(uuid: str, capability: str = "7.0") -> Card:
    return Card(index=0, uuid=uuid, name="V100", compute_capability=capability, memory=1)


def found(
    was: str | None, now: str | None, before: list[str], here: list[Card], status: str = "found"
) -> list[tuple[str, Severity]]:
    snapshot = Snapshot(
        environment="demo",
        generation=1,
        step=1,
        step_name="a",
        made="2026-01-01T00:00:00Z",
        by="x",
        machine="there",
        driver=was,
        python="3.11",
        engine="uv",
        state={},
        cards=tuple(BuiltFor(uuid=uuid, name="V100", compute_capability="7.0") for uuid in before),
    )
    machine = Machine(
        system="Linux",
        architecture="x86_64",
        glibc=None,
        hostname="here",
        gpus_status=status,
        gpus=tuple(here),
        driver=now,
    )
    return [(each.subject, each.severity) for each in machine_changed(snapshot, machine)]


NOTHING: list[tuple[str, Severity]] = []


@pytest.mark.parametrize(
    ("before", "here", "wanted"),
    [
        (["a"], [card("a")], NOTHING),
        (["a"], [card("a"), card("b", "8.6")], NOTHING),
        ([], [], NOTHING),
        (["a"], [card("b")], [("gpu", Severity.INFO)]),
        (["a", "b"], [card("a")], [("gpu", Severity.INFO)]),
        (["a"], [card("b", "8.6")], [("gpu", Severity.WARNING)]),
        (["a"], [], [("gpu", Severity.WARNING)]),
    ],
)
def test_cards(before: list[str], here: list[Card], wanted: list[tuple[str, Severity]]) -> None:
    assert found("550", "550", before, here) == wanted


@pytest.mark.parametrize(
    ("was", "now", "wanted"),
    [
        ("550.54.15", "550.54.15", NOTHING),
        ("550.54.15", "580.65.06", [("driver", Severity.INFO)]),
        ("550.54.15", "535.104", [("driver", Severity.WARNING)]),
        ("550.54.15", None, [("driver", Severity.WARNING)]),
        ("550.54.15", "strange", [("driver", Severity.INFO)]),
        (None, "550.54.15", NOTHING),
    ],
)
def test_drivers(was: str | None, now: str | None, wanted: list[tuple[str, Severity]]) -> None:
    assert found(was, now, [], []) == wanted


def test_a_driver_that_does_not_answer_has_not_changed() -> None:
    assert found("550", None, ["a"], [], status="failed: it hangs") == NOTHING
