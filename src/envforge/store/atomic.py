"""Files that are either as before or complete, whatever happens in between."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from envforge.model.errors import EnvforgeError

_MODE = 0o644


def not_writable(path: Path, error: OSError) -> EnvforgeError:
    """The error for a place in the home that cannot be written, with the remedy."""
    return EnvforgeError(
        "home-not-writable",
        f"cannot write `{path}`",
        cause=error.strerror or str(error),
        hint="free space or change its permissions, or choose another folder with `--home` or `ENVFORGE_HOME`",
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
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise EnvforgeError(
            "record-not-found",
            f"{what} `{path}` is not there",
            hint="the records of this generation are incomplete: build it again with `envforge create --replace`",
        ) from error
    except (UnicodeDecodeError, OSError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise corrupt(path, what=what, cause=cause or str(error)) from error


def corrupt(path: Path, *, what: str, cause: str) -> EnvforgeError:
    """The error for a record that cannot be understood; ``cause`` says what is wrong with it."""
    return EnvforgeError(
        "corrupt-record",
        f"{what} `{path}` cannot be read",
        cause=cause,
        hint="put the file back from a backup; else build the environment again with `envforge create --replace`",
    )
