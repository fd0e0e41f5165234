"""Drift told as what seems to have happened: when, by whom, by which installer, how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from envforge.model.drift import Drift, DriftEvent, FileDrift
from envforge.model.state import shown

_GAP = 120 * 10**9  # nanoseconds; what lies further apart did not happen at once
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trace:
    """One distribution (``whole``), or one file of what is otherwise there. ``what``: gone, installed, changed."""

    what: str
    whole: bool
    names: tuple[str, ...]
    paths: tuple[str, ...]
    when: int | None
    uid: int | None = None
    installer: str | None = None

    @property
    def hand(self) -> tuple[bool, int, str]:
        """What tells two hands apart. Whether a distribution or single files changed is no matter of whose hand."""
        return (self.what == "gone", -1 if self.uid is None else self.uid, self.installer or "")


def events(drift: Drift, users: Mapping[int, str]) -> tuple[DriftEvent, ...]:
    """What happened at once by one hand is one event; the earliest first, those of no known time last.

    ``users``: uid -> name. Nothing on the disk tells who deleted something: ``by`` is None then. A new file that nobody
    owns makes no event.
    """
    hands: dict[tuple[bool, int, str], list[_Trace]] = {}
    for trace in _traces(drift):
        hands.setdefault(trace.hand, []).append(trace)
    groups = [group for traces in hands.values() for group in _at_once(traces)]
    groups.sort(key=lambda group: (group[0].when is None, group[0].when or 0, group[0].hand))
    return tuple(_event(group, users) for group in groups)


def _traces(drift: Drift) -> Iterator[_Trace]:
    whole = {*drift.missing, *drift.extra, *drift.changed}
    owned: dict[str, list[FileDrift]] = {name: [] for name in whole}
    for file in drift.files:
        mine = whole.intersection(file.owners)
        for name in mine:
            owned[name].append(file)
        if not mine and file.kind in {"missing", "modified"}:
            what, uid = ("gone", None) if file.kind == "missing" else ("changed", file.uid)
            yield _Trace(what=what, whole=False, names=file.owners, paths=(file.path,), when=file.when, uid=uid)
    for name in drift.missing:
        times = [file.when for file in owned[name] if file.when is not None]
        paths = tuple(file.path for file in owned[name])
        yield _Trace(what="gone", whole=True, names=(name,), paths=paths, when=max(times, default=None))
    for name in (*drift.extra, *drift.changed):
        when, uid, installer = drift.infos.get(name, (None, None, drift.after[name].installer))
        paths = tuple(file.path for file in owned[name])
        what = "changed" if name in drift.before else "installed"
        yield _Trace(what=what, whole=True, names=(name,), paths=paths, when=when, uid=uid, installer=installer)


def _at_once(traces: Iterable[_Trace]) -> Iterator[list[_Trace]]:
    """One hand's traces, split where more than the gap lies between two."""
    group: list[_Trace] = []
    for trace in sorted(traces, key=lambda each: (each.when is None, each.when or 0, each.paths)):
        if group and _is_later(group[-1], trace):
            yield group
            group = []
        group.append(trace)
    if group:
        yield group


def _is_later(before: _Trace, after: _Trace) -> bool:
    if before.when is None or after.when is None:
        return before.when is not after.when
    return after.when - before.when > _GAP


def _event(group: list[_Trace], users: Mapping[int, str]) -> DriftEvent:
    first, last = group[0].when, group[-1].when
    uid, installer = group[0].uid, group[0].installer
    names = tuple(sorted({shown(name) for trace in group for name in trace.names}))
    files = len({path for trace in group for path in trace.paths})
    by = users.get(uid, f"uid {uid}") if uid is not None else None
    parts = [_how_much(group, names, files), _when(first, last, gone=group[0].what == "gone")]
    parts += [installer] if installer else []
    parts.append(f"by {by}" if by else "by whom cannot be known")
    return DriftEvent(
        text=", ".join(parts),
        distributions=names,
        files=files,
        first=_iso(first),
        last=_iso(last),
        by=by,
        installer=installer,
    )


def _how_much(group: list[_Trace], names: tuple[str, ...], files: int) -> str:
    what = " and ".join(sorted({trace.what for trace in group}))
    whole = tuple(sorted({shown(name) for trace in group if trace.whole for name in trace.names}))
    if whole:
        told = f" ({', '.join(whole)})" if len(whole) <= _NAMED else ""
        rest = f" of {_counted(len(names), 'distribution')}" if len(names) > len(whole) else ""
        told += f", {_counted(files, 'file')}{rest}" if files else ""
        return f"{_counted(len(whole), 'distribution')} {what}{told}"
    owners = list(names) if len(names) <= _NAMED else [f"{len(names)} distributions"]
    owners += ["no distribution"] if any(not trace.names for trace in group) else []
    named = f" (`{group[0].paths[0]}`)" if files == 1 else ""
    return f"{_counted(files, 'file')} of {', '.join(owners)} {what}{named}"


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _when(first: int | None, last: int | None, *, gone: bool) -> str:
    if first is None or last is None:
        return "when cannot be known"
    start, end = _time(first), _time(last)
    text = f"{start:%Y-%m-%d %H:%M}"
    if f"{end:%Y-%m-%d %H:%M}" != text:
        text += f" to {end:%H:%M}" if start.date() == end.date() else f" to {end:%Y-%m-%d %H:%M}"
    return f"{text} UTC" + (" at the latest" if gone else "")


def _time(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC)


def _iso(nanoseconds: int | None) -> str | None:
    return None if nanoseconds is None else f"{_time(nanoseconds):%Y-%m-%dT%H:%M:%SZ}"
