"""What the cache of conda packages holds, as py-rattler lays it out.

As of py-rattler 0.28: ``pkgs/NAME-VERSION-BUILD`` is an unpacked package; ``pkgs/NAME-VERSION-BUILD.lock`` beside it
holds a number of 8 bytes and the sha256 of its archive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NUMBER = 8
_DIGEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """One package. ``sha256`` (hex) is None where the cache does not say it; ``places``: all that goes with it."""

    name: str
    version: str
    sha256: str | None
    places: tuple[Path, ...]


def unpacked(folder: Path) -> Iterator[Unpacked]:
    """The packages in ``folder``, by name of their folder; what a process that was killed left of one is none."""
    for place in _folders(folder):
        try:
            index = json.loads((place / "info/index.json").read_bytes())
            name, version = str(index["name"]), str(index["version"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        lock = _lock(place)
        yield Unpacked(name=name, version=version, sha256=_sha256(lock), places=(place, lock))


def debris(folder: Path) -> Iterator[Path]:
    """What lies in ``folder`` and belongs to no package."""
    for place in _folders(folder):
        if not (place / "info/index.json").is_file():
            yield from (place, _lock(place))


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if place.is_dir() and not place.is_symlink())
    except OSError:
        return []


def _lock(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _sha256(lock: Path) -> str | None:
    try:
        data = lock.read_bytes()
    except OSError:
        return None
    return data[_NUMBER:].hex() if len(data) == _NUMBER + _DIGEST else None
