"""The bytes of a file that a user named."""

from __future__ import annotations

import errno
from pathlib import Path

from envforge.model.errors import UsageError


def read(path: Path, most: int) -> bytes:
    """The first ``most`` bytes of the file at ``path``. Raises UsageError ``unreadable-file``."""
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is no file")  # noqa: TRY301 - a pipe would keep the reader waiting for ever
        with path.open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        raise unreadable(path, (getattr(error, "strerror", None) or str(error)).lower()) from error


def unreadable(path: Path, cause: str) -> UsageError:
    """The error for a file that cannot be read."""
    return UsageError("unreadable-file", f"`{path}` cannot be read", cause=cause)
