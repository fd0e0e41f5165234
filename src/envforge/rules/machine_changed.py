"""The cards and the driver that an environment was built with, against those that are here now."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.snapshot import Snapshot

_REMEDY = "`envforge profiles` tells what fits here; where the card is only out for now, nothing"


def machine_changed(snapshot: Snapshot, machine: Machine) -> Iterator[Finding]:
    """A card that is gone, and a driver that is gone or another: info where what is here can stand in, else a warning.

    A driver that cannot be asked is not said to have changed.
    """
    if machine.gpus_status.startswith("failed") and not machine.gpus:
        return
    yield from _cards(snapshot, machine)
    yield from _driver(snapshot, machine)


def _cards(snapshot: Snapshot, machine: Machine) -> Iterator[Finding]:
    here = {card.uuid for card in machine.gpus}
    gone = [card for card in snapshot.cards if card.uuid not in here]
    if not gone:
        return
    left = {card.compute_capability for card in machine.gpus}
    stands_in = all(card.compute_capability in left for card in gone)
    names = ", ".join(f"{card.name} ({card.uuid})" for card in gone)
    there = ", ".join(f"{card.index} {card.name}" for card in machine.gpus) or "none"
    yield Finding(
        id="machine-changed",
        severity=Severity.INFO if stands_in else Severity.WARNING,
        subject="gpu",
        message=f"it was built on `{snapshot.machine}` for {names}; of GPUs `{machine.hostname}` has {there}",
        evidence={
            "built_on": snapshot.machine,
            "gone": [{"uuid": card.uuid, "name": card.name} for card in gone],
            "here": [{"uuid": card.uuid, "name": card.name} for card in machine.gpus],
        },
        remedy=None if stands_in else _REMEDY,
    )


def _driver(snapshot: Snapshot, machine: Machine) -> Iterator[Finding]:
    before, now = snapshot.driver, machine.driver
    if before is None or before == now:
        return
    older = now is None or _older(now, before)
    yield Finding(
        id="machine-changed",
        severity=Severity.WARNING if older else Severity.INFO,
        subject="driver",
        message=f"it was built on `{snapshot.machine}` with driver {before}; "
        + (f"`{machine.hostname}` has {now}" if now else f"`{machine.hostname}` has none"),
        evidence={"built_on": snapshot.machine, "before": before, "now": now},
        remedy="see that it still works: `envforge run`, or a driver as new as it was" if older else None,
    )


def _older(now: str, before: str) -> bool:
    try:
        return Version(now) < Version(before)
    except InvalidVersion:
        return False
