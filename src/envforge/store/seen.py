"""What the files of a generation looked like when they were last known to be right: ``records/NAME/G/seen.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.model.drift import Seen
from envforge.model.errors import EnvforgeError

from .atomic import read_text, write_text
from .layout import Home

_SCHEMA = 1
_COLUMNS = ("size", "mtime", "ctime", "inode")
_BETWEEN = "\0"  # the one character that no path holds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """``deep``: every file was hashed then; ``step``: the snapshot that it was compared with; ``told``: though every
    file was right, there was something to tell of the whole (debris, clashes), which a look at files does not show.
    """

    seen: Seen
    deep: bool
    step: int
    told: bool


def path(home: Home, name: str, generation: int) -> Path:
    """Where it lies."""
    return home.record(name, generation) / "seen.json"


def write(home: Home, name: str, generation: int, seen: Seen, *, deep: bool, step: int, told: bool) -> bool:
    """Remember ``seen``; False, and nothing more, where this user cannot write there or the generation has no records.

    It only spares hashing: without it an audit takes longer and finds the same.
    """
    folder = home.record(name, generation)
    if not folder.is_dir():
        return False
    columns = zip(*seen.values(), strict=True) if seen else ((),) * len(_COLUMNS)
    document = {
        "schema": _SCHEMA,
        "deep": deep,
        "step": step,
        "told": told,
        "paths": _BETWEEN.join(seen),
        **{column: list(values) for column, values in zip(_COLUMNS, columns, strict=True)},
    }
    try:
        home.make_record(name, generation)  # refuses a planted symlink
        write_text(path(home, name, generation), json.dumps(document, separators=(",", ":")))
    except EnvforgeError:
        return False
    return True


def read(home: Home, name: str, generation: int) -> SeenRecord | None:
    """What was remembered last; None where nothing was, or it cannot be read or understood."""
    try:
        data = json.loads(read_text(path(home, name, generation), what="what was seen"))
        return _record(data)
    except (EnvforgeError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _record(data: Any) -> SeenRecord | None:
    """Raises KeyError, TypeError or ValueError for another shape."""
    text, columns = data["paths"], [data[column] for column in _COLUMNS]
    if data["schema"] != _SCHEMA or type(data["step"]) is not int:
        return None
    if not isinstance(data["deep"], bool) or not isinstance(data["told"], bool) or not isinstance(text, str):
        return None
    if any(set(map(type, column)) - {int} for column in columns):
        return None
    paths = text.split(_BETWEEN) if text else []
    rows = list(zip(*columns, strict=True))
    seen = dict(zip(paths, rows, strict=True))
    return SeenRecord(seen=seen, deep=data["deep"], step=data["step"], told=data["told"])
