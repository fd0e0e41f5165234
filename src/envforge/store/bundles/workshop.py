"""``FILE.part``: the folder beside a bundle in which it is made, and what was fetched waits for the next try."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.store.atomic import FULL, sync_folder

_OURS = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{32}\.part)?|[0-9]{1,3}", re.ASCII)


@contextmanager
def workshop(file: Path) -> Iterator[Path]:
    """The folder, for this process alone; it stays where the block fails, and goes where it does not.

    Raises EnvforgeError ``locked``, ``not-writable``, ``disk-full``.
    """
    folder = file.with_name(f"{file.name}.part")
    if file.is_dir():
        raise EnvforgeError("not-writable", f"`{file}` cannot be written", cause="it is a folder")
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise refused(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EnvforgeError(
                "locked", f"`{file}` is being written by another envforge", hint="wait until it has finished"
            ) from error
        try:
            _clear(folder, finished=False)
            yield folder
            _clear(folder, finished=True)
        except OSError as error:
            if error.errno in FULL or str(error.filename).startswith(str(folder)):
                raise refused(folder, error) from error
            raise
        with suppress(OSError):
            folder.rmdir()
    finally:
        os.close(descriptor)


def put_in_place(made: Sequence[Path], file: Path, *, split: bool) -> tuple[Path, ...]:
    """Move what was written to where it belongs: ``file``, or ``file.001`` and so forth. Raises OSError.

    Of several the first comes last, and goes first where there was an older one: it is never there without the others.
    """
    targets = [_part(file, number) for number in range(1, len(made) + 1)] if split else [file]
    if split:
        targets[0].unlink(missing_ok=True)
        number = len(made) + 1
        while (older := _part(file, number)).is_file():
            older.unlink()
            number += 1
    for source, target in zip(reversed(made), reversed(targets), strict=True):
        source.replace(target)
    sync_folder(file.parent)
    return tuple(targets)


def refused(place: Path, error: OSError) -> EnvforgeError:
    """The error for a place of the user's that cannot be written."""
    if error.errno in FULL:
        return EnvforgeError(
            "disk-full",
            f"the disk is full: cannot write `{error.filename or place}`",
            cause=error.strerror,
            hint="free some space (`df -h`), then run the same command again: what was fetched is kept",
        )
    cause = error.strerror or str(error)
    return EnvforgeError("not-writable", f"`{error.filename or place}` cannot be written", cause=cause)


def _part(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number:03}")


def _clear(folder: Path, *, finished: bool) -> None:
    """Remove what a killed command left half done, or all that is ours."""
    for entry in folder.iterdir():
        if _OURS.fullmatch(entry.name) and (finished or len(entry.name) != 64):
            entry.unlink(missing_ok=True)
