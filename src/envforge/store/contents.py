"""Bytes of files that no lock gives back: where two distributions own a path, which of them won is kept as it lay."""

from __future__ import annotations

import shutil
from pathlib import Path

from envforge.model.errors import EnvforgeError

from .atomic import not_writable
from .layout import Home


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
        shutil.copyfile(file, partial)
        partial.replace(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise not_writable(target, error) from error


def read(home: Home, name: str, generation: int, sha256: str) -> bytes:
    """The bytes; raises EnvforgeError ``record-not-found``."""
    try:
        return path(home, name, generation, sha256).read_bytes()
    except OSError as error:
        raise EnvforgeError(
            "record-not-found", f"the content {sha256[:12]} of `{name}/{generation}` is not kept", cause=error.strerror
        ) from error
