"""What a build that was interrupted left: gone on with where it is whole, else taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.plan import Plan, StepPlan
from envforge.model.progress import Note
from envforge.model.snapshot import Snapshot
from envforge.model.state import Observation, State
from envforge.probe import prefix as prefixes
from envforge.rules.diff import changes as differences
from envforge.store import profiles as kept_profiles
from envforge.store import snapshots
from envforge.store.journal import QUARANTINED, Journal

from . import sealing
from .generations import sealed
from .remove import delete
from .shop import Shop

_OVER = frozenset({"switched", "abandoned", "pruned", QUARANTINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """An unfinished generation. ``done``: how many of its steps are whole and are what the plan foresees."""

    generation: int
    done: int
    observation: Observation | None


def left_over(shop: Shop, name: str, plan: Plan, python: str) -> Interrupted | None:
    """The last generation, if its build was neither finished nor given up; ``python``: full version of the next.

    The caller holds the environment's lock. Raises EnvforgeError.
    """
    home = shop.home
    numbers = home.generations(name)
    if not numbers or home.current(name) == numbers[-1]:
        return None
    generation = numbers[-1]
    if home.adopted(name, generation) is not None:
        return None  # no build left it, and nothing of it is envforge's to go on with or to remove
    events = Journal(home.journal(name, generation)).events()
    if not events and home.prefix(name, generation).exists():
        return None  # somebody took its journal: nobody can say that it never was in use
    # What a guard stopped is kept to look at; what a broken world stopped is taken up again.
    if any(event.kind in _OVER or (event.kind == "failed" and "findings" in event.data) for event in events):
        return None
    if sealed(home, name, generation):
        sealing.open_(home, name, generation)  # it was about to go into use
    observation = _whole(shop, name, generation, plan, python)
    done = snapshots.latest(home, name, generation) if observation is not None else None
    return Interrupted(generation=generation, done=done.step if done else 0, observation=observation)


def abandon(shop: Shop, name: str, generation: int) -> None:
    """Take it away. Raises EnvforgeError, LeftoverError ``leftover``."""
    text = f"generation {generation} of `{name}`, left by an interrupted build, is removed: this starts clean"
    shop.tell(Note(text=text))
    Journal(shop.home.journal(name, generation)).append("abandoned")
    left = delete(shop.home.prefix(name, generation))
    if left:
        raise LeftoverError(
            "leftover",
            f"{len(left)} files of it could not be removed",
            cause=left[0],
            hint="make them writable, then run it again",
        )


def _whole(shop: Shop, name: str, generation: int, plan: Plan, python: str) -> Observation | None:
    """What lies there, if it is exactly the last snapshot, and that exactly what the plan foresees; else None."""
    home = shop.home
    try:
        snapshot = snapshots.latest(home, name, generation)
        same = kept_profiles.text(home, name, generation) == plan.profile.text
        if snapshot is None or not same or not _goes_on_from(shop, snapshot, plan, python):
            return None
        rows = snapshots.read(home, name, generation, snapshot.step, files=True).files
        prefix = home.prefix(name, generation)
        if prefixes.changed(prefix, rows):
            return None
        observation = prefixes.look(prefix)
    except EnvforgeError:
        return None
    if {row.path for row in observation.files} != {row.path for row in rows}:
        return None
    return observation


def _goes_on_from(shop: Shop, snapshot: Snapshot, plan: Plan, python: str) -> bool:
    """Whether this build, had it not been interrupted, would stand where the snapshot does."""
    return (
        0 < snapshot.step <= len(plan.steps)
        and snapshot.python == python
        and snapshot.engine == shop.settings.engine
        and _foreseen(snapshot, plan.steps[: snapshot.step])
    )


def _foreseen(snapshot: Snapshot, steps: Sequence[StepPlan]) -> bool:
    """Whether the plan would come to the very same files by the steps that the snapshot holds."""
    wanted: State = steps[-1].state
    return not any(
        change.before is None or change.after is None or change.before.sha256 != change.after.sha256
        for change in differences(wanted, snapshot.state)
    )
