"""How a generation looked to a launch when it last was in order: ``records/NAME/G/stamp.json``."""

from __future__ import annotations

from contextlib import suppress

from envforge.model.drift import Launch

from . import spare
from .layout import Home

_FILE = "stamp.json"
_SCHEMA = 1


def write(home: Home, name: str, generation: int, stamp: Launch) -> bool:
    """Remember ``stamp``; False, and nothing more, where this user cannot write there or there are no records."""
    return spare.write(home, name, generation, _FILE, {"schema": _SCHEMA, "paths": dict(stamp)})


def forget(home: Home, name: str, generation: int) -> None:
    """Something in it is known to be wrong that its looks do not tell."""
    with suppress(OSError):
        (home.record(name, generation) / _FILE).unlink(missing_ok=True)


def read(home: Home, name: str, generation: int) -> Launch | None:
    """What was remembered last; None where nothing was, or it cannot be read or understood."""
    data = spare.read(home, name, generation, _FILE)
    if not isinstance(data, dict) or data.get("schema") != _SCHEMA:
        return None
    paths = data.get("paths")
    if not isinstance(paths, dict) or set(map(type, paths.values())) - {str}:
        return None
    return paths
