"""Where an environment lay when its scripts were written: they name their Python by its whole path."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .sites import names

_HEAD = 1024
_PYTHON = re.compile(rb"#!(?:/bin/sh\n'''exec' )?[\"']?(/[^\n\"']*)/bin/python[0-9.]*[\"' \n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """``place``: the prefix that ``scripts`` (paths relative to their own one, sorted) start the Python of."""

    place: str
    scripts: tuple[str, ...]


def look(prefix: Path, tail: str) -> Moved | None:
    """Scripts in ``bin`` that start the Python of another prefix whose path ends in ``tail``; None where none does.

    Nothing is raised.
    """
    real = os.path.realpath(prefix)
    found: dict[str, list[str]] = {}
    for name in names(f"{real}/bin"):
        place = _place(f"{real}/bin/{name}")
        if place is not None and place.endswith(tail) and os.path.realpath(place) != real:
            found.setdefault(place, []).append(f"bin/{name}")
    if not found:
        return None
    place = max(found, key=lambda each: (len(found[each]), each))
    return Moved(place=place, scripts=tuple(found[place]))


def _place(path: str) -> str | None:
    try:
        # A planted pipe must not block, a planted symlink not lead elsewhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        head = _PYTHON.match(os.read(descriptor, _HEAD))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return os.fsdecode(head[1]) if head else None
