"""`rebuild`: a new generation that holds what the one in use was recorded to hold, or what its profile says now."""

from __future__ import annotations

from functools import partial

from envforge.model.errors import EnvforgeError
from envforge.model.plan import Plan
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.model.state import State, shown
from envforge.rules.diff import changes as differences
from envforge.store import snapshots
from envforge.store.layout import Home
from envforge.store.locking import hold

from . import quarantining
from .create import build
from .path import in_use, require
from .restoring import lock, restore
from .shop import Shop
from .update import again

_NAMED = 12


def rebuild(shop: Shop, name: str, *, fresh: bool = False, no_build: bool = False) -> Result[Build]:
    """A new generation of ``name`` from the recorded lock, or ``fresh`` from the profile as its file reads now.

    The generation in use stays, and may be gone from the disk: its records are enough.
    Raises UsageError ``no-such-environment``; EnvforgeError ``no-generation``, ``not-cached`` or ``not-restorable``
    naming every file that cannot be had, ``profile-gone`` (with ``fresh``), and where a step fails.
    """
    home = shop.home
    with hold(home, require(home, name), f"rebuild {name}"):
        current = in_use(home, name)
        quarantining.journals(shop, name)
        if not fresh:
            held = lock(shop, name, current)
            last = max(snapshots.numbers(home, name, current))
            if last > len(held.states):
                text = f"what was accepted since ({name}/{current}.{last}) is not built again: no step made it"
                shop.tell(Note(text=text, level="warning"))
            return restore(shop, name, held, command="rebuild", no_build=no_build)
        quarantining.records(shop, name, current)
        profile = again(home, name, current)
        before = _recorded(home, name, current)
        told = None if before is None else partial(_tell, shop, f"{name}/{current}", before)
        # It was built for this machine, or in spite of it, once: a card that does not fit is told again, not refused.
        return build(shop, profile, name, command="rebuild", any_machine=True, no_build=no_build, planned=told)


def _recorded(home: Home, name: str, generation: int) -> State | None:
    """What the generation held at its end; None where no record tells."""
    try:
        snapshot = snapshots.latest(home, name, generation)
    except EnvforgeError:
        return None
    return snapshot.state if snapshot is not None else None


def _tell(shop: Shop, old: str, before: State, planned: Plan) -> None:
    """Say what the plan would bring that the old generation does not hold."""
    after = planned.steps[-1].state if planned.steps else planned.base
    lines = []
    for change in differences(before, after):
        name = shown(change.name)
        if change.before is None:
            lines.append(f"{name} {after[change.name].version} is added")
        elif change.after is None:
            lines.append(f"{name} {change.before.version} is left out")
        elif change.before.version != change.after.version:
            lines.append(f"{name} {change.before.version} -> {change.after.version}")
        else:
            lines.append(f"{name} {change.after.version} is another build")
    more = [f"{len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    said = ", ".join([*lines[:_NAMED], *more]) or "the same versions"
    shop.tell(Note(text=f"against {old}: {said}"))
