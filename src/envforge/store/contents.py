"""Bytes of files that no lock gives back: what nobody owns, and where two distributions own a path, which won."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from envforge.model.errors import EnvforgeError

from .atomic import corrupt, not_writable, read_bytes, sync_folder
from .layout import Home

_WHAT = "the kept content"
LARGEST = 1 << 20
"""Bytes of a file that nobody owns, above which it is not kept."""


def path(home: Home, name: str, generation: int, sha256: str) -> Path:
    """Where these bytes lie, whether or not they are kept."""
    return home.record(name, generation) / "contents" / sha256


def keep(home: Home, name: str, generation: int, file: Path, sha256: str) -> None:
    """Copy ``file`` with its permissions, whose content has this sha256, into the records of a generation, once.

    Raises EnvforgeError ``home-not-writable`` or ``planted-link``; a file that is gone by now is left out.
    """
    target = path(home, name, generation, sha256)
    home.make_folder(target.parent)
    if target.is_file() and not target.is_symlink():
        return
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
        with open(descriptor, "wb") as copy, file.open("rb") as original:  # noqa: PTH123 - a descriptor, not a path
            shutil.copyfileobj(original, copy)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(original.fileno()).st_mode))
            os.fsync(copy.fileno())
        Path(temporary).replace(target)
        sync_folder(target.parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise not_writable(target, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)


def known(home: Home, name: str, generation: int) -> frozenset[str]:
    """The sha256 (hex) of all that is kept of a generation."""
    try:
        return frozenset(entry.name for entry in path(home, name, generation, "x").parent.iterdir())
    except OSError:
        return frozenset()


def read(home: Home, name: str, generation: int, sha256: str) -> bytes:
    """The bytes; raises EnvforgeError ``record-not-found``, or ``corrupt-record`` where other bytes lie there."""
    place = path(home, name, generation, sha256)
    content = read_bytes(place, what=_WHAT)
    if content is None:
        raise EnvforgeError("record-not-found", f"the content {sha256[:12]} of `{name}/{generation}` is not kept")
    if hashlib.sha256(content).hexdigest() != sha256:
        raise corrupt(place, what=_WHAT, cause="its sha256 is another")
    return content
