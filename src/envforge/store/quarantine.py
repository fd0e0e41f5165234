"""Records that cannot be read, moved aside: ``records/NAME/G/quarantine/FILE.N``. Nothing is ever deleted here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from envforge.model.errors import EnvforgeError

from .atomic import not_writable, sync_folder
from .journal import Journal
from .layout import Home

_CORRUPT = "corrupt-record"


def damaged(read: Callable[[], object]) -> bool:
    """Whether a record is there and its bytes are to blame that it cannot be read."""
    try:
        read()
    except EnvforgeError as error:
        return error.code == _CORRUPT and not isinstance(error.__cause__, PermissionError)
    return False


def journal(home: Home, name: str, generation: int) -> Path | None:
    """Where the journal cannot be read: move it aside, begin it anew with the lines that can, and return where it is.

    Raises EnvforgeError ``home-not-writable`` or ``planted-link``.
    """
    kept = Journal(home.journal(name, generation))
    if not damaged(kept.events):
        return None
    target = _free(home, name, generation, kept.path.name)
    try:
        if kept.path.is_file() and not kept.path.is_symlink():
            # By a second name: should this be killed, one of the two is still the journal.
            target.hardlink_to(kept.path)
        else:
            kept.path.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise not_writable(target, error) from error
    kept.begin_anew(target.name)
    return target


def aside(home: Home, name: str, generation: int, path: Path) -> Path:
    """Move one record aside and return where it is now; raises EnvforgeError as `journal` does."""
    target = _free(home, name, generation, path.name)
    try:
        path.rename(target)
        sync_folder(path.parent)
    except OSError as error:
        raise not_writable(target, error) from error
    return target


def _free(home: Home, name: str, generation: int, file: str) -> Path:
    """A name in the quarantine that nothing has yet."""
    folder = home.make_folder(home.record(name, generation) / "quarantine")
    number = 1
    while os.path.lexists(folder / f"{file}.{number}"):
        number += 1
    return folder / f"{file}.{number}"
