"""What the files of a generation looked like when they were last known to be right: ``records/NAME/G/seen.json``."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.model.drift import Seen
from envforge.model.state import Clash, Debris, FileRow, Observation
from envforge.system.memory import uncollected

from . import spare
from .layout import Home

_FILE = "seen.json"
_SCHEMA = 3
# Each column in 8 bytes a value, as this machine has them, in Base64: JSON's numbers take four times as long.
_COLUMNS = {"size": "q", "mtime": "q", "ctime": "q", "inode": "Q"}
_BETWEEN = "\0"  # the one character that no path holds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """``step``: the snapshot that it was compared with; ``known``: what `surroundings.entries` says of its files.

    ``observation``: what two owners brought and what an interruption left, as far as rules judge it again, without the
    distributions; None where not all was as recorded.
    """

    seen: Seen
    step: int
    known: frozenset[str]
    observation: Observation | None


def path(home: Home, name: str, generation: int) -> Path:
    """Where it lies."""
    return home.record(name, generation) / _FILE


def write(
    home: Home,
    name: str,
    generation: int,
    seen: Seen,
    *,
    known: Collection[str],
    observation: Observation | None,
    step: int,
) -> bool:
    """Remember ``seen``; False, and nothing more, where this user cannot write there, the generation has no records or
    a file has a time that 8 bytes cannot hold.

    It only spares hashing: without it an audit takes longer and finds the same. For the rest see `SeenRecord`.
    """
    table = _table(seen)
    if table is None:
        return False
    document = {
        "schema": _SCHEMA,
        "step": step,
        "known": sorted(known),
        "observation": None if observation is None else _kept(observation),
        **table,
    }
    return spare.write(home, name, generation, _FILE, document)


def read(home: Home, name: str, generation: int, now: Seen) -> SeenRecord | None:
    """What was remembered last; None where nothing was, or it cannot be read or understood.

    ``now`` is what the files look like now: ``seen`` is that very value where the table says the same, in the order of
    the same walk, which spares reading the table.
    """
    try:
        with uncollected():
            return _record(spare.read(home, name, generation, _FILE), now)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _record(data: Any, now: Seen) -> SeenRecord | None:
    """Raises KeyError, TypeError, AttributeError or ValueError for another shape."""
    if data["schema"] != _SCHEMA or type(data["step"]) is not int:
        return None
    table = _table(now)
    same = table is not None and all(data[column] == text for column, text in table.items())
    kept = data["observation"]
    return SeenRecord(
        seen=now if same else _seen(data),
        step=data["step"],
        known=frozenset(data["known"]),
        observation=None if kept is None else _observation(kept),
    )


def _table(seen: Seen) -> dict[str, str] | None:
    """``seen`` as texts, in its order; None where a number is too large."""
    columns = zip(*seen.values(), strict=True) if seen else ((),) * len(_COLUMNS)
    try:
        return {
            "paths": _BETWEEN.join(seen),
            **{
                column: b64encode(array(kind, values)).decode("ascii")
                for (column, kind), values in zip(_COLUMNS.items(), columns, strict=True)
            },
        }
    except OverflowError:
        return None


def _seen(data: Any) -> Seen:
    text = data["paths"]
    paths = text.split(_BETWEEN) if text else []
    columns = []
    for column, kind in _COLUMNS.items():
        values = array(kind)
        values.frombytes(b64decode(data[column], validate=True))
        columns.append(values)
    return dict(zip(paths, zip(*columns, strict=True), strict=True))


def _kept(observation: Observation) -> dict[str, Any]:
    # A rule asks who owns the neighbours of a path that two own; nobody asks for more of the files.
    beside = tuple({f"{clash.path.rpartition('/')[0]}/" for clash in observation.clashes})
    return {
        "clashes": [[clash.path, dict(clash.declared), clash.actual] for clash in observation.clashes],
        "debris": [
            [item.kind, item.name, item.path, list(item.missing), list(item.rows)] for item in observation.debris
        ],
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
            Debris(kind=kind, name=name, path=path, missing=tuple(missing), rows=tuple(rows))
            for kind, name, path, missing, rows in kept["debris"]
        ),
        files=tuple(
            FileRow(path=path, size=size, mtime=mtime, inode=inode, owners=tuple(owners))
            for path, size, mtime, inode, owners in kept["files"]
        ),
        unreadable=dict(kept["unreadable"]),
    )
