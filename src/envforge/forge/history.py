"""What happened to an environment, read from its journals: generations, steps, what opened and what healed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from envforge.model import wire
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Severity
from envforge.model.result import Result
from envforge.model.snapshot import Event
from envforge.model.views import GenerationRecord, HistoryView, StepRecord
from envforge.store import audited, profiles, snapshots
from envforge.store.journal import Journal
from envforge.store.layout import Home

from .path import require
from .shop import Shop

CONFORMS = "conforms"
FOLDER_GONE = "its folder is gone"
"""The verdict of an environment whose link leads to a generation that is not there any more."""
_STAGES = frozenset({"started", "resumed", "failed", "interrupted", "abandoned", "finished", "switched"})
_TAKEN = {"adopted": "adopt", "accepted": "accept"}
_NAME_LINE = re.compile(r"^name:\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def history(shop: Shop, name: str) -> Result[HistoryView]:
    """All generations, oldest first. Raises UsageError ``no-such-environment``."""
    home = shop.home
    require(home, name)
    records = tuple(generation(home, name, number) for number in home.generations(name))
    return Result(command="history", data=HistoryView(environment=name, generations=records))


def generation(home: Home, name: str, number: int) -> GenerationRecord:
    """One generation; what of its records cannot be read is told in ``problem``, never raised."""
    problem: str | None = None
    events: tuple[Event, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    try:
        events = Journal(home.journal(name, number)).events()
        steps = _steps(events, name, number, snapshots.numbers(home, name, number))
    except EnvforgeError as error:
        problem = f"{error.message}: {error.cause}" if error.cause else error.message
    except (KeyError, TypeError, ValueError) as error:
        problem = f"`{home.journal(name, number)}` holds a step in a shape that is not known ({error})"
    # A rollback switches to it once more, long after it was finished.
    ended = next((event for event in events if event.kind in {"finished", "switched"}), None)
    broken = _last(events, "failed", "interrupted")
    return GenerationRecord(
        number=number,
        current=home.current(name) == number,
        built=home.holds(name, number),
        verdict="unreadable" if problem else _verdict(events, steps),
        profile=profile_name(home, name, number),
        started=events[0].at if events else None,
        finished=ended.at if ended else None,
        reason=_reason(broken) if broken and not ended else _pruned(home, name, number, events),
        steps=steps,
        problem=problem,
    )


def _pruned(home: Home, name: str, number: int, events: Sequence[Event]) -> str | None:
    """Why the folder of a generation that was in use is gone, where envforge itself removed it."""
    gone = any(event.kind == "pruned" for event in events) and not home.holds(name, number)
    return "pruned, to free disk: its records are enough to build it again" if gone else None


def last_verdict(home: Home, name: str, number: int, built: str) -> str:
    """``built``, the verdict of the build, unless the last audit found errors in what it left."""
    last = audited.read(home, name, number)
    return f"{_findings(last.errors)} by the last audit" if last is not None and last.errors else built


def profile_name(home: Home, name: str, number: int) -> str | None:
    """The name of the recorded profile, without reading all of its YAML; None where there is none."""
    try:
        found = _NAME_LINE.search(profiles.text(home, name, number))
    except EnvforgeError:
        return None
    return found[1] if found else None


def _steps(events: Sequence[Event], name: str, number: int, kept: tuple[int, ...]) -> tuple[StepRecord, ...]:
    """Finished steps in order, and what was adopted or accepted.

    A step that was done again after an interruption counts once, as it was last.
    """
    records: dict[int, StepRecord] = {}
    for event in events:
        if event.kind != "step-finished" and event.kind not in _TAKEN:
            continue
        data = event.data
        position = int(data["step"])
        records[position] = StepRecord(
            name=str(data.get("name", event.kind)),
            action=str(data.get("action", _TAKEN.get(event.kind))),
            snapshot=f"{name}/{number}.{position}" if position in kept else None,
            changes=tuple(wire.read_change(change) for change in data["changes"]),
            opens=tuple(wire.read_finding(finding) for finding in data.get("opens", ())),
            heals=tuple((str(finding), str(subject)) for finding, subject in data.get("heals", ())),
            differs=tuple(str(text) for text in data.get("differs", ())),
            seconds=float(data.get("seconds", 0.0)),
            files=int(data.get("files", 0)),
        )
    return tuple(records.values())


def _verdict(events: Sequence[Event], steps: Sequence[StepRecord]) -> str:
    ends = [event.kind for event in events if event.kind in _STAGES]
    if not ends or ends[-1] in {"started", "resumed"}:
        return "unfinished"
    if ends[-1] == "abandoned":
        return "abandoned"
    found = _last(events, "failed")
    if ends[-1] == "failed" and found and found.data.get("findings"):
        return _findings(len(found.data["findings"]))
    if ends[-1] in {"failed", "interrupted"}:
        at = _last(events, "step-started")
        place = f" at {at.data.get('name')}" if at and at.data.get("name") and len(steps) < _begun(events) else ""
        return f"{ends[-1]}{place}"
    taken = _last(events, *_TAKEN)
    if taken is not None:
        stood = taken.data.get("findings", ())
        return _findings(len(stood)) if stood else CONFORMS
    left = {finding.key for step in steps for finding in step.opens if finding.severity is Severity.ERROR}
    left -= {key for step in steps for key in step.heals}
    return _findings(len(left)) if left else CONFORMS


def _findings(count: int) -> str:
    return f"{count} finding" if count == 1 else f"{count} findings"


def _begun(events: Sequence[Event]) -> int:
    return len({str(event.data.get("name")) for event in events if event.kind == "step-started"})


def _last(events: Sequence[Event], *kinds: str) -> Event | None:
    return next((event for event in reversed(events) if event.kind in kinds), None)


def _reason(event: Event) -> str | None:
    data: Mapping[str, Any] = event.data
    parts = [str(data[key]) for key in ("message", "cause") if data.get(key)]
    if isinstance(data.get("findings"), list):
        parts.append(", ".join(str(finding) for finding in data["findings"]))
    return ": ".join(parts) or None
