"""Bytes of files that no lock gives back: what nobody owns, and where two distributions own a path, which won."""

from __future__ import annotations

import shutil
from pathlib import Path

from .atomic import not_writable
from .layout import Home

LARGEST = 1 << 20
"""Bytes of a file that nobody owns, above which it is not kept."""


def path(home: Home, name: str, generation: int, sha256: str) -> Path:
    """Where these bytes lie, whether or not they are kept."""
    return home.record(name, generation) / "contents" / sha256


def keep(home: Home, name: str, generation: int, file: Path, sha256: str) -> None:
    """Copy ``file``, whose content has this sha256, into the records of a generation, once.

    Raises EnvforgeError ``home-not-writable``; a file that is gone by now is left out.
    """
    target = path(home, name, generation, sha256)
    if target.exists():
        return
    try:
        target.parent.mkdir(exist_ok=True)
        partial = target.with_suffix(".part")
        shutil.copy(file, partial)  # with its permissions
        partial.replace(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise not_writable(target, error) from error


def known(home: Home, name: str, generation: int) -> frozenset[str]:
    """The sha256 (hex) of all that is kept of a generation."""
    try:
        return frozenset(entry.name for entry in path(home, name, generation, "x").parent.iterdir() if not entry.suffix)
    except OSError:
        return frozenset()
