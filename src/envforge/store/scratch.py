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
    with _folder(root) as all_of_it:
        # One at a time: a folder is locked before anybody else may take it for a dead one.
        with suppress(OSError):
            fcntl.flock(all_of_it, fcntl.LOCK_EX)
            _clear(root)
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def sweep(root: Path) -> None:
    """Take away what killed commands left, where nothing else does it: no folder is needed now."""
    with suppress(OSError), _folder(root) as all_of_it:
        fcntl.flock(all_of_it, fcntl.LOCK_EX)
        _clear(root)


def _clear(root: Path) -> None:
    """Remove the folders whose owner has ended: their locks fell with it. Where there are no locks, nothing is."""
    for place in root.glob(f"{_PREFIX}*"):
        with suppress(OSError), _folder(place) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Its descriptor, which no child inherits; closing it gives a lock on it back."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
