"""Building again what a lock holds: with the Python of then, from the cache first, and never by a resolver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.plan import Change
from envforge.model.profile import Action, Backend, Profile, Symbol
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.model.state import Distribution, State, shown
from envforge.probe import pythons
from envforge.rules.diff import changes as differences
from envforge.store import snapshots

from . import quarantining
from .create import build
from .generations import beginning, profile, states
from .shop import Shop
from .trust import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What was installed after each step of ``profile``. ``python``: version of then; ``substitutes``: of then.

    ``called`` names it in sentences (``generation 3``). ``generation``: the one of this home whose records it is, None
    for a lock from a file; ``wheels``: the folder that may hold what was built elsewhere; ``shelf``: sha256 -> file, of
    those that came with it. ``base``: what was there before the first step, with the backend conda.
    """

    called: str
    generation: int | None
    profile: Profile
    states: tuple[State, ...]
    python: str
    substitutes: Mapping[str, str]
    wheels: Path | None = None
    base: State | None = None
    shelf: Mapping[str, Stored] = field(default_factory=dict)


def lock(shop: Shop, name: str, generation: int, steps: int | None = None) -> Lock:
    """The lock of the first ``steps`` steps, all where None.

    Raises EnvforgeError where a record is gone or damaged, ``not-restorable`` where there are not so many steps, or
    where it was adopted.
    """
    home = shop.home
    if home.adopted(name, generation) is not None:
        raise EnvforgeError(
            "not-restorable",
            f"`{name}/{generation}` cannot be built again: it was adopted, and no lock knows its files",
            hint=f"`envforge rebuild {name} --fresh` builds a generation from its profile, and this one stays",
        )
    whole = profile(home, name, generation)
    count = len(whole.steps) if steps is None else steps
    if count > len(whole.steps):
        raise EnvforgeError(
            "not-restorable",
            f"`{name}/{generation}.{count}` cannot be built: no step of its profile made it",
            hint=f"`{name}/{generation}.{len(whole.steps)}` is the last that a step made",
        )
    cut = whole if count == len(whole.steps) else _cut(whole, count)
    return Lock(
        called=f"generation {generation}",
        generation=generation,
        profile=cut,
        states=states(home, name, generation, count),
        python=snapshots.read(home, name, generation, count).python,
        substitutes=dict(beginning(home, name, generation).get("substitutes", {})),
        base=snapshots.read(home, name, generation, 0).state if whole.backend is Backend.CONDA else None,
    )


def _cut(whole: Profile, steps: int) -> Profile:
    from envforge.profiles.build import dump  # noqa: PLC0415 - only who restores part of a profile writes one

    # The checks prove the whole profile; what they import, and the library of a symbol, may come with a later step.
    guards = tuple(guard for guard in whole.guards if not isinstance(guard, Symbol))
    cut = replace(whole, steps=whole.steps[:steps], guards=guards, smoke=())
    return replace(cut, text=dump(cut))


def restore(
    shop: Shop, name: str, held: Lock, *, command: str, any_machine: bool = True, no_build: bool = False
) -> Result[Build]:
    """A new generation that holds what ``held`` does; the caller holds the environment's lock.

    ``any_machine``: what was built for this machine, or in spite of it, once, is built whatever cards are here.

    Raises EnvforgeError ``not-cached`` or ``not-restorable`` naming every file that cannot be had, and as `build` does.
    What a program that ran again made of it otherwise is a warning in the findings.
    """
    lock = f"`{name}/{held.generation}.{len(held.states)}` is built anew from its lock"
    shop.tell(Note(text=lock if held.generation is not None else f"`{name}` is built from {held.called}"))
    settings = replace(shop.settings, substitutes=held.substitutes)
    again = [step.name for step in held.profile.steps if step.action is Action.RUN]
    if again:
        steps = ", ".join(f"`{each}`" for each in again)
        shop.tell(Note(text=f"run again, since no lock holds what a program does: {steps}"))
    result = build(
        replace(shop, settings=settings),
        held.profile,
        name,
        command=command,
        any_machine=any_machine,
        no_build=no_build,
        locked=held.states,
        exact=True,
        recorded=_recorded(shop, name, held.generation, len(held.states)) if held.generation is not None else None,
        wheels=held.wheels,
        base=held.base,
        shelf=held.shelf,
        python=_python(shop, held),
    )
    made = result.data.generation
    last = snapshots.latest(shop.home, name, made) if made and result.data.switched else None
    if last is None or not held.states:
        return result
    return replace(result, findings=(*result.findings, *_otherwise(name, held, last.state)))


def _recorded(shop: Shop, name: str, generation: int, step: int) -> Recorded:
    """What the lock's end held, down to the bytes; without these where its table of files is gone or damaged."""
    home = shop.home
    quarantining.table(shop, name, generation, step)
    try:
        return Recorded.of(home, snapshots.read(home, name, generation, step, files=True))
    except EnvforgeError:
        return Recorded(home=home, name=name, generation=generation)


def _python(shop: Shop, held: Lock) -> str:
    """The version of the Python to take: the very one where it is here, else another of the same minor version.

    A channel has the very one.
    """
    if held.profile.backend is Backend.CONDA:
        return held.python
    try:
        pythons.find(held.python)
    except EnvforgeError:
        minor = ".".join(held.python.split(".")[:2])
        there = pythons.find(minor).version
        gone = "not here any more" if held.generation is not None else "not here"
        shop.tell(Note(text=f"Python {held.python} is {gone}: Python {there} is taken", level="warning"))
        return minor
    return held.python


def _otherwise(name: str, held: Lock, now: State) -> tuple[Finding, ...]:
    """Where the new generation does not hold what the lock's did."""
    return tuple(
        Finding(
            id="package-changed",
            severity=Severity.WARNING,
            subject=shown(change.name),
            message=f"`{shown(change.name)}` is {_told(change.after)}, in {held.called} it was "
            f"{_told(change.before, change.after)}",
            evidence={"before": change.before.version if change.before else None, "generation": held.generation},
            remedy="a step of kind run, or another Python, brought it, and no lock holds that: "
            f"see `envforge history {name}`",
        )
        for change in differences(held.states[-1], now)
        if not _in_a_package(change)
    )


def _in_a_package(change: Change) -> bool:
    """Whether it only came or went with conda packages, which are compared themselves."""
    sides = [side for side in (change.before, change.after) if side is not None]
    return all(side.origin is not None and side.origin.kind == "conda" for side in sides)


def _told(item: Distribution | None, other: Distribution | None = None) -> str:
    if item is None:
        return "absent"
    return f"{item.version}, with other contents" if other and other.version == item.version else item.version
