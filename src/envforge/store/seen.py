"""What the files of a generation looked like when they were last known to be right: ``records/NAME/G/seen.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envforge.model.drift import Seen
from envforge.model.state import Clash, Debris, FileRow, Observation

from . import spare
from .layout import Home

_FILE = "seen.json"
_SCHEMA = 2
_COLUMNS = ("size", "mtime", "ctime", "inode")
_BETWEEN = "\0"  # the one character that no path holds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """``step``: the snapshot that it was compared with.

    ``observation``: what two owners brought and what an interruption left, as far as rules judge it again, without the
    distributions; None where not all was as recorded.
    """

    seen: Seen
    step: int
    observation: Observation | None


def write(home: Home, name: str, generation: int, seen: Seen, *, observation: Observation | None, step: int) -> bool:
    """Remember ``seen``; False, and nothing more, where this user cannot write there or the generation has no records.

    It only spares hashing: without it an audit takes longer and finds the same. ``observation``: see `SeenRecord`.
    """
    columns = zip(*seen.values(), strict=True) if seen else ((),) * len(_COLUMNS)
    document = {
        "schema": _SCHEMA,
        "step": step,
        "observation": None if observation is None else _kept(observation),
        "paths": _BETWEEN.join(seen),
        **{column: list(values) for column, values in zip(_COLUMNS, columns, strict=True)},
    }
    return spare.write(home, name, generation, _FILE, document)


def read(home: Home, name: str, generation: int) -> SeenRecord | None:
    """What was remembered last; None where nothing was, or it cannot be read or understood."""
    try:
        return _record(spare.read(home, name, generation, _FILE))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _record(data: Any) -> SeenRecord | None:
    """Raises KeyError, TypeError or ValueError for another shape."""
    text, columns = data["paths"], [data[column] for column in _COLUMNS]
    if data["schema"] != _SCHEMA or type(data["step"]) is not int or not isinstance(text, str):
        return None
    if any(set(map(type, column)) - {int} for column in columns):
        return None
    paths = text.split(_BETWEEN) if text else []
    rows = list(zip(*columns, strict=True))
    seen = dict(zip(paths, rows, strict=True))
    kept = data["observation"]
    return SeenRecord(seen=seen, step=data["step"], observation=None if kept is None else _observation(kept))


def _kept(observation: Observation) -> dict[str, Any]:
    # A rule asks who owns the neighbours of a path that two own; nobody asks for more of the files.
    beside = tuple({f"{clash.path.rpartition('/')[0]}/" for clash in observation.clashes})
    return {
        "clashes": [[clash.path, dict(clash.declared), clash.actual] for clash in observation.clashes],
        "debris": [[item.kind, item.name, item.path, list(item.missing)] for item in observation.debris],
        "unreadable": dict(observation.unreadable),
        "files": [
            [row.path, row.size, row.mtime, row.inode, list(row.owners)]
            for row in observation.files
            if beside and row.path.startswith(beside)
        ],
    }


def _observation(kept: Any) -> Observation:
    return Observation(
        state={},
        clashes=tuple(
            Clash(path=path, declared=dict(declared), actual=actual) for path, declared, actual in kept["clashes"]
        ),
        debris=tuple(
            Debris(kind=kind, name=name, path=path, missing=tuple(missing))
            for kind, name, path, missing in kept["debris"]
        ),
        files=tuple(
            FileRow(path=path, size=size, mtime=mtime, inode=inode, owners=tuple(owners))
            for path, size, mtime, inode, owners in kept["files"]
        ),
        unreadable=dict(kept["unreadable"]),
    )
