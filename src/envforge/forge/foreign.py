"""An environment that envforge did not build: what can be known of it without a snapshot."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.model.drift import Checked, Seen, Surroundings
from envforge.model.errors import UsageError
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.plan import Verdict
from envforge.model.profile import Keep, Profile
from envforge.model.progress import Note
from envforge.model.state import Observation
from envforge.probe import prefix as prefixes
from envforge.probe import pythons, stamps, surroundings
from envforge.probe.foreign import Foreign, own_code, recognise
from envforge.probe.shadows import shadows
from envforge.rules.against_record import findings as disagreements
from envforge.rules.context import Moment
from envforge.rules.wording import guard_text
from envforge.store.layout import Home

from . import native as natives
from .looking import gathered, markers
from .shop import Shop
from .timeline import Timeline
from .witness import Testimony, hear


def names_a_path(home: Home, text: str) -> bool:
    """Whether the words mean a folder and no environment of the home."""
    return "/" in text or text in {".", ".."} or (text not in home.environments() and Path(text).is_dir())


def keeper(home: Home, path: Path) -> tuple[str, int] | None:
    """The environment and generation of the home whose prefix lies at ``path``; None where it is nobody's."""
    real = os.path.realpath(path)
    for name in home.environments():
        for number in reversed(home.generations(name)):
            if home.holds(name, number) and os.path.realpath(home.prefix(name, number)) == real:
                return name, number
    return None


def found(path: Path) -> Foreign:
    """The environment at ``path``. Raises UsageError ``not-an-environment``."""
    there = recognise(path)
    if there is None:
        what = "holds no environment" if path.is_dir() else "is no folder" if path.exists() else "is not there"
        raise UsageError(
            "not-an-environment",
            f"`{path}` {what}",
            cause="neither a `pyvenv.cfg` nor a folder `conda-meta` tells of a Python there" if path.is_dir() else None,
            hint="name the environment's own folder, the one that holds `bin`",
        )
    return there


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """``now``: from before the look, so that what changes meanwhile is noticed by the next."""

    there: Foreign
    now: Seen
    observation: Observation
    testimony: Testimony
    facts: Surroundings


def look(there: Foreign) -> Look:
    """Everything of it is hashed, nothing is run, nothing written."""
    now = stamps.stamps(there.prefix)
    observation = prefixes.look(there.prefix)
    known = {row.path for row in observation.files if row.owners} | own_code(there.prefix)
    facts = surroundings.look(there.prefix, known)
    # Where installers differ in what they call theirs, an `__init__` of nobody's may be a namespace's own.
    others = (row.path for row in observation.files if not row.owners)
    inside = shadows(known, others, namespaces=False)
    return Look(
        there=there,
        now=now,
        observation=observation,
        testimony=hear(there.prefix, observation.state.keys()),
        facts=replace(facts, unowned=tuple(sorted({*facts.unowned, *inside}))),
    )


def checked(seen: Look, seconds: float) -> Checked:
    """How much was looked at."""
    rows = seen.observation.files
    return Checked(
        distributions=len(seen.observation.state),
        files=len(seen.now),
        bytes=sum(row.size for row in rows if row.link is None),
        seconds=seconds,
    )


def judge(
    home: Home, seen: Look, profile: Profile, host: Machine | None = None
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """All that stands against it, the worst first, and the guards of ``profile`` that nobody can judge, with why.

    ``host``: this machine, where somebody has looked at it already.
    """
    observation = seen.observation
    native = natives.look(
        home, seen.there.prefix, rows=observation.files, state=observation.state, digests={}, profile=profile
    )
    cards = natives.cards(profile, host) if natives.has_code(native) else ()
    timeline = Timeline(profile, markers(seen.there.python), {}, base={}, cards=cards)
    timeline.add(Moment(step=None, state=observation.state, observation=observation, native=native), {})
    told = [*disagreements(seen.observation.state, seen.testimony.disagreement), *_python(seen.there.prefix)]
    unknown = [f"{each.guard}: {each.because}" for each in timeline.verdicts() if each.verdict is Verdict.UNKNOWN]
    unknown += [
        f"{guard_text(guard)}: no earlier build is recorded to compare with"
        for guard in profile.guards
        if isinstance(guard, Keep)
    ]
    return gathered(told, seen.facts, timeline.findings, profile), tuple(unknown)


def _python(prefix: Path) -> tuple[Finding, ...]:
    if os.access(prefix / "bin" / "python", os.X_OK):
        return ()
    return (
        Finding(
            id="file-missing",
            severity=Severity.ERROR,
            subject="bin/python",
            message="`bin/python` is gone or leads to what is gone: nothing in the environment can start",
            evidence={"count": 1, "paths": ["bin/python"]},
            remedy="bring back the Python that it was made with, or make it anew",
        ),
    )


def compare(shop: Shop, there: Foreign, profile: Profile) -> None:
    """Say where the environment is another than the profile wants, which is no finding: nothing in it is wrong."""
    if not pythons.fits(there.python, profile.python):
        text = f"it has Python {there.python}, the profile `{profile.name}` wants {profile.python}"
        shop.tell(Note(text=text, level="warning"))
    if there.backend != profile.backend:
        text = f"it is of {there.backend}, the profile `{profile.name}` wants {profile.backend}"
        shop.tell(Note(text=text, level="warning"))
