"""What a user asked to have in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envforge.model.errors import EnvforgeError


def write(path: Path, text: str) -> str:
    """Write ``text`` and return the path. Raises EnvforgeError ``not-writable``."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvforgeError("not-writable", f"`{path}` cannot be written", cause=error.strerror) from error
    return str(path)


def write_all(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Write name -> text into ``folder``, which is made, and return the paths. Raises as `write` does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvforgeError("not-writable", f"`{folder}` cannot be written", cause=error.strerror) from error
    return tuple(write(folder / name, text) for name, text in files.items())
