"""What an environment is: built when, by whom, for which card, outdated, in use, restorable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.profile import Profile
from envforge.model.result import Result
from envforge.model.smoked import Kept, Smoked
from envforge.model.snapshot import Event, Snapshot
from envforge.model.views import Maker, ShowView, User, needs
from envforge.probe import processes
from envforge.store import audited, smoked, snapshots
from envforge.store.journal import Journal
from envforge.store.layout import Home

from . import condas, generations, profiles
from .generations import linked, sealed
from .history import FOLDER_GONE, generation, last_verdict
from .path import require
from .shop import Shop

T = TypeVar("T")


def show(shop: Shop, name: str) -> Result[ShowView]:
    """Everything that is recorded of the generation in use (or, where none is, of the last one).

    Raises UsageError ``no-such-environment`` or ``newer-record``; one that cannot be read is told in ``problems``.
    """
    home = shop.home
    known = home.generations(require(home, name))
    number = home.current(name)
    gone = linked(home, name) if number is None else None
    about = number or gone or (known[-1] if known else None)
    if about is None:
        return Result(
            command="show", data=ShowView(environment=name, prefix=None, generation=number, verdict="no records")
        )
    record = generation(home, name, about)
    problems: list[str] = []
    profile = _read(lambda: profiles.recorded(home, name, about), problems)
    latest = _read(lambda: snapshots.latest(home, name, about), problems)
    adopted = home.adopted(name, about)
    made = _made(home, name, about, profile, latest)
    events = _read(Journal(home.journal(name, about)).events, problems) or ()
    proved = smoked.read(home, name, about)
    outdated, why = moved_on(name, profile, begun(events)) if profile else (None, "its profile is not recorded")
    return Result(
        command="show",
        data=ShowView(
            environment=name,
            prefix=str(home.prefix(name, number).resolve()) if number is not None else None,
            generation=number,
            verdict=FOLDER_GONE if gone else last_verdict(home, name, about, record.verdict),
            profile=record.profile,
            source=begun(events).get("source"),
            summary=profile.summary if profile else "",
            card=needs(profile.gpu) if profile else None,
            python=profile.python if profile else None,
            backend=profile.backend.value if profile else None,
            built=_maker(made) if made else None,
            distributions=len(latest.state) if latest else 0,
            steps=tuple(step.name for step in record.steps),
            commands=tuple(profile.commands) if profile else (),
            snapshots=tuple(f"{name}/{one}.{step}" for one in known for step in snapshots.numbers(home, name, one)),
            generations=known,
            outdated=outdated,
            outdated_why=why,
            smoke=_smoke(events, proved),
            smoked=proved,
            restorable=_restorable(home, name, about, latest),
            problems=tuple(problems),
            used_by=_users(home.generations_root / name, adopted),
            adopted=adopted is not None,
            sealed=_sealed(home, name, about),
            audited=audited.read(home, name, about),
            activation=condas.activation(home, name),
        ),
    )


def _read(read: Callable[[], T], problems: list[str]) -> T | None:
    """A record; None, and told in ``problems``, where it cannot be read. Raises UsageError ``newer-record``."""
    try:
        return read()
    except UsageError:
        raise
    except EnvforgeError as error:
        problems.append(f"{error.message}: {error.cause}" if error.cause else error.message)
        return None


def _made(home: Home, name: str, number: int, profile: Profile | None, latest: Snapshot | None) -> Snapshot | None:
    """The snapshot that a build ended with, or an adoption: what was accepted since nobody built."""
    if latest is None or profile is None:
        return latest
    try:
        return snapshots.read(home, name, number, generations.made(home, name, number, profile, latest.step))
    except EnvforgeError:
        return latest


def _sealed(home: Home, name: str, number: int) -> bool | None:
    try:
        return sealed(home, name, number)
    except EnvforgeError:
        return None


def begun(events: tuple[Event, ...]) -> Mapping[str, Any]:
    """What was noted when the build began: ``source``, where the profile was read from, and others."""
    return next((event.data for event in reversed(events) if event.data.get("source")), {})


def moved_on(name: str, recorded: Profile, begun: Mapping[str, Any]) -> tuple[bool | None, str | None]:
    """Whether the profile that is found now says something else than the recorded one, and in which words."""
    source = str(begun["source"]) if begun.get("source") else None
    if source and source.endswith(".toml"):
        return None, f"it was built from the lock `{source}`, which holds its profile as it was then"
    if source and not Path(source).exists():
        return None, f"`{source}` is gone"
    try:
        found = profiles.read(Path(source)) if source else profiles.named(recorded.name)
        if "backend" in begun:
            found = profiles.with_backend(found, recorded.backend)
    except EnvforgeError as error:
        return None, error.message
    if _content(found) == _content(recorded):
        return False, None
    return True, f"yes, `{found.source}` changed: `envforge update {name}`"


def _content(profile: Profile) -> Profile:
    return replace(profile, source="", text="", overridden=False)


def _users(prefixes: Path, adopted: Path | None) -> tuple[User, ...]:
    """Who uses any generation, by pid, be it one that lies elsewhere."""
    found = {each.pid: each for place in (prefixes, adopted) if place for each in processes.using(place)}
    return tuple(User(pid=pid, user=each.user, command=" ".join(each.argv)) for pid, each in sorted(found.items()))


def _maker(snapshot: Snapshot) -> Maker:
    return Maker(
        by=snapshot.by,
        made=snapshot.made,
        machine=snapshot.machine,
        driver=snapshot.driver,
        python=snapshot.python,
        engine=snapshot.engine,
    )


def _smoke(events: tuple[Event, ...], proved: tuple[Smoked, ...]) -> str | None:
    """The last checks in words: those on the card of the last time, else those of the build."""
    if proved:
        last = proved[0]
        return f"{_told(last.checks)}, {last.at}" + (f" on {last.card_name}" if last.card_name else "")
    checks = {
        str(event.data.get("name")): Kept(
            name=str(event.data.get("name")),
            ok=event.data.get("ok") is True,
            ending=str(event.data.get("ending")),
            skipped=event.data.get("skipped"),
        )
        for event in events
        if event.kind == "smoke"
    }
    return _told(tuple(checks.values())) if checks else None


def _told(checks: tuple[Kept, ...]) -> str:
    failed = [each.name for each in checks if not each.ok and each.skipped is None]
    skipped = [each.name for each in checks if each.skipped is not None]
    passed = len(checks) - len(failed) - len(skipped)
    if failed:
        said = f"failed: {', '.join(failed)}"
    elif skipped:
        said = f"{passed} passed"
    else:
        said = f"all {passed} passed"
    return f"{said}, skipped: {', '.join(skipped)}" if skipped else said


def _restorable(home: Home, name: str, number: int, latest: Snapshot | None) -> bool:
    """Whether a lock is there that restores it; of what was accepted none does, since no step made it."""
    if latest is None or (latest.step_name is None and latest.step > 0):
        return False
    return snapshots.lock_path(home, name, number, latest.step).is_file()
