"""`rollback`: an earlier generation becomes the environment again, or is built again as it was after a step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envforge.model.drift import Switch
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.plan import Change
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.model.state import State
from envforge.rules.diff import changes as differences
from envforge.rules.diff import told
from envforge.store import snapshots
from envforge.store.layout import Home
from envforge.store.locking import hold
from envforge.system import clock

from . import condas, quarantining
from .generations import broken, in_use_once, linked, put_in_place
from .path import require
from .shop import Shop

_SNAPSHOT = re.compile(r"(?P<name>[^/]+)/(?P<generation>[1-9][0-9]{0,8})(\.(?P<step>0|[1-9][0-9]{0,8}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """From which generation to which; ``before`` None = none was in use. ``started``: on the monotonic clock."""

    name: str
    before: int | None
    started: float


def rollback(shop: Shop, name: str, snapshot: str | None = None) -> Result[Switch]:
    """Go back to the generation before the one in use, or to ``snapshot``: ``ENV/G``, or ``ENV/G.K``.

    A snapshot that is not the end of a generation that was in use and still is whole is built anew from its lock.
    Raises UsageError ``no-such-environment`` or ``invalid-name``; EnvforgeError ``no-earlier-generation``,
    ``generation-missing``, ``generation-unproven``, ``generation-broken``, ``snapshot-not-found``, and as `restore`.
    """
    home = shop.home
    started = clock.monotonic()
    require(home, name)
    generation, step = (None, None) if snapshot is None else _parsed(name, snapshot)
    with hold(home, name, f"rollback {name}"):
        home.refuse_foreign(name)
        quarantining.journals(shop, name)
        way = _Way(name=name, before=linked(home, name), started=started)
        if generation is None:
            return _switched(shop, way, _earlier(home, name, way.before))
        if step is None:
            _insist(home, name, generation)
            return _switched(shop, way, generation)
        ends = snapshots.read(home, name, generation, step).step == max(snapshots.numbers(home, name, generation))
        if ends and in_use_once(home, name, generation) and broken(home, name, generation) is None:
            return _switched(shop, way, generation)
        return _built(shop, way, generation, step)


def _parsed(name: str, text: str) -> tuple[int, int | None]:
    """Generation and step that the words mean. Raises UsageError."""
    found = _SNAPSHOT.fullmatch(text)
    if found is None:
        raise UsageError(
            "invalid-name",
            f"`{text}` is neither a snapshot nor a generation",
            hint=f"a snapshot is named `{name}/G.K`, a generation `{name}/G`; see `envforge history {name}`",
        )
    if found["name"] != name:
        raise UsageError(
            "invalid-name",
            f"`{text}` is of another environment than `{name}`",
            hint=f"see `envforge history {name}` for its own",
        )
    return int(found["generation"]), int(found["step"]) if found["step"] is not None else None


def _earlier(home: Home, name: str, before: int | None) -> int:
    """The newest generation before ``before`` that was in use and can be again. Raises EnvforgeError."""
    passed: dict[int, str] = {}
    for number in reversed(home.generations(name)):
        if before is not None and number >= before:
            continue
        why = broken(home, name, number) if in_use_once(home, name, number) else "it never was in use"
        if why is None:
            return number
        passed[number] = why
    here = f"generation {before}" if before is not None else "none"
    restorable = next((number for number in passed if snapshots.numbers(home, name, number)), None)
    raise EnvforgeError(
        "no-earlier-generation",
        f"there is no generation of `{name}` to go back to from {here}",
        cause="\n".join(f"generation {number}: {why}" for number, why in passed.items()) or None,
        hint=f"see `envforge history {name}`" if restorable is None else _hint(home, name, restorable),
    )


def _hint(home: Home, name: str, generation: int) -> str:
    last = max(snapshots.numbers(home, name, generation), default=0)
    return f"`envforge rollback {name} {name}/{generation}.{last}` builds it anew from its lock"


def _insist(home: Home, name: str, generation: int) -> None:
    """Raise EnvforgeError unless this very generation can be in use again."""
    if generation not in home.generations(name):
        there = ", ".join(f"`{name}/{number}`" for number in home.generations(name))
        raise EnvforgeError(
            "generation-missing", f"there is no generation {generation} of `{name}`", hint=f"there are {there}"
        )
    if not in_use_once(home, name, generation):
        raise EnvforgeError(
            "generation-unproven",
            f"generation {generation} of `{name}` never was in use",
            cause="its build was not finished, or its guards or smoke checks failed",
            hint=f"see `envforge history {name}`",
        )
    why = broken(home, name, generation)
    if why is not None:
        raise EnvforgeError(
            "generation-broken" if home.holds(name, generation) else "generation-missing",
            f"generation {generation} of `{name}` cannot be used: {why}",
            hint=_hint(home, name, generation),
        )


def _switched(shop: Shop, way: _Way, generation: int) -> Result[Switch]:
    """The generation, put in place; where it is there already, nothing is done."""
    home = shop.home
    changes = _differences(shop, way, generation)
    if home.current(way.name) != generation:
        put_in_place(home, way.name, generation, rollback=True)
        condas.keep_listed(shop, way.name)
    data = Switch(
        environment=way.name,
        before=way.before,
        after=generation,
        snapshot=None,
        built=False,
        seconds=clock.monotonic() - way.started,
        changes=changes,
    )
    return Result(command="rollback", data=data)


def _built(shop: Shop, way: _Way, generation: int, step: int) -> Result[Switch]:
    """A new generation that holds what this one did after ``step``. Raises EnvforgeError."""
    from .restoring import lock, restore  # noqa: PLC0415 - a mere switch need not pay for what builds

    name = way.name
    held = lock(shop, name, generation, step)
    result = restore(shop, name, held, command="rollback")
    data = Switch(
        environment=name,
        before=way.before,
        after=result.data.generation,
        snapshot=f"{name}/{generation}.{step}",
        built=True,
        seconds=clock.monotonic() - way.started,
        switched=result.data.switched,
        changes=_differences(shop, way, result.data.generation) if result.data.switched else (),
    )
    return Result(command="rollback", data=data, findings=result.findings)


def _differences(shop: Shop, way: _Way, generation: int) -> tuple[Change, ...]:
    """What was recorded of the new one against the old; damaged records of the old do not keep anyone from leaving."""
    old = _last(shop.home, way.name, way.before) if way.before is not None else {}
    new = _last(shop.home, way.name, generation)
    if old is None or new is None:
        shop.tell(Note(text="what differs is not known: a snapshot of it cannot be read", level="warning"))
        return ()
    return told(differences(old, new))


def _last(home: Home, name: str, generation: int) -> State | None:
    try:
        snapshot = snapshots.latest(home, name, generation)
    except EnvforgeError:
        return None
    return snapshot.state if snapshot is not None else None
