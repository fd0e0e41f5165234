"""Files that are either as before or complete, whatever happens in between."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from envforge.model.errors import EnvforgeError, UsageError

_MODE = 0o644
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says where a disk or a quota is full."""


def not_writable(path: Path, error: OSError) -> EnvforgeError:
    """The error for a place in the home that cannot be written, with the remedy; ``disk-full`` where that is why."""
    if error.errno in FULL:
        return EnvforgeError(
            "disk-full",
            f"the disk is full: cannot write `{path}`",
            cause=error.strerror,
            hint="free some space (`df -h`), then run the same command again",
        )
    return EnvforgeError(
        "home-not-writable",
        f"cannot write `{path}`",
        cause=error.strerror or str(error),
        hint="change its permissions, or choose another folder with `--home` or `ENVFORGE_HOME`",
    )


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in UTF-8: a temporary file beside it, fsync, rename, fsync of the folder.

    A symlink at ``path`` is replaced, not followed. Raises EnvforgeError ``home-not-writable``.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with open(descriptor, "w", encoding="utf-8", newline="\n") as stream:  # noqa: PTH123 - a descriptor, not a path
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), _MODE)
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise not_writable(path, error) from error
        raise


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last through a loss of power; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path: Path, *, what: str) -> str:
    """The text of a record. ``what`` names it in errors (``the snapshot``).

    Raises EnvforgeError ``record-not-found`` or ``corrupt-record``.
    """
    content = read_bytes(path, what=what)
    if content is None:
        raise EnvforgeError(
            "record-not-found",
            f"{what} `{path}` is not there",
            hint="the records of this generation are incomplete: build it again with `envforge create --replace`",
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise corrupt(path, what=what, cause="it is no UTF-8 text") from error


def read_bytes(path: Path, *, what: str) -> bytes | None:
    """The bytes of a record; None where it is not there. Raises EnvforgeError ``corrupt-record``."""
    try:
        # A pipe in its place must not keep the reader waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise corrupt(path, what=what, cause="it is no file")
            return stream.read()
    except FileNotFoundError as error:
        if path.is_symlink():
            raise corrupt(path, what=what, cause="it is a symlink that leads nowhere") from error
        return None
    except IsADirectoryError as error:
        raise corrupt(path, what=what, cause="it is no file") from error
    except OSError as error:
        raise corrupt(path, what=what, cause=error.strerror or str(error)) from error


def corrupt(path: Path, *, what: str, cause: str) -> EnvforgeError:
    """The error for a record that cannot be understood; ``cause`` says what is wrong with it."""
    return EnvforgeError(
        "corrupt-record",
        f"{what} `{path}` cannot be read",
        cause=cause,
        hint="put the file back from a backup; else build the environment again with `envforge create --replace`",
    )


def newer(path: Path, cause: str) -> EnvforgeError:
    """The error for a record that this envforge is too old for."""
    return UsageError(
        "newer-record",
        f"`{path}` was written by a newer envforge",
        cause=cause,
        hint="use the newer envforge, which reads all older records",
    )
