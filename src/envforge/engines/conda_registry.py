"""The list that conda keeps of a user's environments, a path a line: no line but one of ours is touched."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def add(file: Path, place: str) -> bool:
    """List ``place`` in ``file``, which is made where it is not there; False where it is listed already.

    A symlink is followed and stays one. Raises OSError.
    """
    data = _read(file) or b""
    line = os.fsencode(place)
    if line in map(bytes.strip, data.split(b"\n")):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    begin = b"" if not data or data.endswith(b"\n") else b"\n"
    # One write at the end: whoever adds another line at the same time loses nothing.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, begin + line + b"\n")
    finally:
        os.close(descriptor)
    return True


def drop(file: Path, place: str) -> bool:
    """Take ``place`` out of ``file``; False where it is not listed. A symlink is followed and stays one.

    Raises OSError.
    """
    data = _read(file)
    line = os.fsencode(place)
    rows = (data or b"").split(b"\n")
    kept = [row for row in rows if row.strip() != line]
    if data is None or kept == rows:
        return False
    real = Path(os.path.realpath(file))
    descriptor, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            stream.write(b"\n".join(kept))
            stream.flush()
            facts = real.stat()
            os.fchmod(stream.fileno(), stat.S_IMODE(facts.st_mode))
            with suppress(PermissionError):
                os.fchown(stream.fileno(), facts.st_uid, facts.st_gid)
        Path(temporary).replace(real)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    return True


def _read(file: Path) -> bytes | None:
    """What stands in it; None where it is not there."""
    try:
        # A pipe in its place must not keep the reader waiting.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
        return stream.read()
