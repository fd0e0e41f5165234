"""What the files of a generation looked like when they were last known to be right: ``records/NAME/G/seen.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envforge.model.drift import Seen

from . import spare
from .layout import Home

_FILE = "seen.json"
_SCHEMA = 1
_COLUMNS = ("size", "mtime", "ctime", "inode")
_BETWEEN = "\0"  # the one character that no path holds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """``deep``: every file was hashed then; ``step``: the snapshot that it was compared with."""

    seen: Seen
    deep: bool
    step: int


def write(home: Home, name: str, generation: int, seen: Seen, *, deep: bool, step: int) -> bool:
    """Remember ``seen``; False, and nothing more, where this user cannot write there or the generation has no records.

    It only spares hashing: without it an audit takes longer and finds the same.
    """
    columns = zip(*seen.values(), strict=True) if seen else ((),) * len(_COLUMNS)
    document = {
        "schema": _SCHEMA,
        "deep": deep,
        "step": step,
        "paths": _BETWEEN.join(seen),
        **{column: list(values) for column, values in zip(_COLUMNS, columns, strict=True)},
    }
    return spare.write(home, name, generation, _FILE, document)


def read(home: Home, name: str, generation: int) -> SeenRecord | None:
    """What was remembered last; None where nothing was, or it cannot be read or understood."""
    try:
        return _record(spare.read(home, name, generation, _FILE))
    except (ValueError, TypeError, KeyError):
        return None


def _record(data: Any) -> SeenRecord | None:
    """Raises KeyError, TypeError or ValueError for another shape."""
    text, columns = data["paths"], [data[column] for column in _COLUMNS]
    if data["schema"] != _SCHEMA or type(data["step"]) is not int:
        return None
    if not isinstance(data["deep"], bool) or not isinstance(text, str):
        return None
    if any(set(map(type, column)) - {int} for column in columns):
        return None
    paths = text.split(_BETWEEN) if text else []
    rows = list(zip(*columns, strict=True))
    seen = dict(zip(paths, rows, strict=True))
    return SeenRecord(seen=seen, deep=data["deep"], step=data["step"])
