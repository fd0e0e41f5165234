"""Folders for what is needed only while a command runs; those that a killed command left are taken away by the next."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .layout import planted

_PREFIX = "build-"


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """An empty folder in ``root`` that goes when the block ends. Raises OSError, EnvforgeError ``planted-link``."""
    if root.is_symlink():
        raise planted(root)
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    # Under a name that no sweep knows until it is locked.
    new = Path(tempfile.mkdtemp(prefix=".", dir=root))
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = new.rename(root / f"{_PREFIX}{new.name[1:]}")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _sweep(root: Path) -> None:
    """Remove the folders whose owner has ended: their locks fell with it. Where there are no locks, nothing is."""
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
