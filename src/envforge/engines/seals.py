"""A prefix without write permission, and with it again; and the marker of PEP 668 that pip and uv heed.

No symlink is ever followed: every folder is opened in the one above it, every file's permissions are changed through a
descriptor of the file itself. So nothing outside the prefix is reached, whatever takes a place meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_LIST = stat.S_IRUSR | stat.S_IXUSR
_HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MARKER = "EXTERNALLY-MANAGED"
_OURS = "# written by envforge\n"


@dataclass(slots=True, kw_only=True)
class Tally:
    """How many files and folders got other permissions.

    ``shared``: how many files have further links (in the cache, in other environments), changed or not.
    ``failed``: ``path: reason`` of what could not be changed; the path counts from the prefix.
    """

    files: int = 0
    folders: int = 0
    shared: int = 0
    failed: list[str] = field(default_factory=list)


_Wanted = Callable[[os.stat_result], int]


def close(prefix: Path) -> Tally:
    """Take the write permission from every folder and file; all else of their modes stays.

    Raises OSError where ``prefix`` is no folder.
    """
    return _Walk(lambda facts: stat.S_IMODE(facts.st_mode) & ~_WRITE).through(prefix)


def open_(prefix: Path) -> Tally:
    """Give the owner's write permission back to folders, and to files that have no other link.

    A shared file stays closed: no installer writes into it, and what is written there would reach the cache and every
    other environment that holds it. Raises OSError where ``prefix`` is no folder.
    """
    return _Walk(lambda facts: stat.S_IMODE(facts.st_mode) | (0 if _is_shared(facts) else stat.S_IWUSR)).through(prefix)


def mark(prefix: Path, text: str) -> None:
    """Write the marker that pip and uv heed, with ``text`` for their users, beside the stdlib of a Python of its own.

    In a venv they heed none, so none is written there, nor over one of somebody else's. Raises OSError.
    """
    lines = "\n".join(f" {line}".rstrip() for line in text.splitlines()).strip()
    for marker in _markers(prefix):
        with suppress(FileExistsError), marker.open("x", encoding="utf-8") as stream:
            stream.write(f"{_OURS}[externally-managed]\nError={lines}\n")


def unmark(prefix: Path) -> None:
    """Take the marker away, if it is ours. Raises OSError."""
    for marker in _markers(prefix):
        if marker.is_file() and not marker.is_symlink() and marker.read_bytes().startswith(_OURS.encode()):
            marker.unlink()


def _markers(prefix: Path) -> list[Path]:
    """Where the marker stands; nowhere in a venv, nor where a symlink leads to a stdlib that others use."""
    if (prefix / "pyvenv.cfg").exists() or (prefix / "lib").is_symlink():
        return []
    folders = (found.parent for found in sorted(prefix.glob("lib/python3.*/os.py")))
    return [folder / _MARKER for folder in folders if not folder.is_symlink()]


def _is_shared(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1


@dataclass(slots=True, kw_only=True)
class _Folder:
    """A folder on the way down; ``path`` is empty or ends in a slash. ``mode``: what it gets in the end."""

    path: str
    descriptor: int
    mode: int
    pending: list[str] = field(default_factory=list)


class _Walk:
    """One way through a prefix; ``wanted`` says from the facts of a file or folder which mode it gets."""

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self._tally = Tally()
        self._stack: list[_Folder] = []

    def through(self, prefix: Path) -> Tally:
        try:
            self._enter(None, str(prefix), "")
            while self._stack:
                here = self._stack[-1]
                if here.pending:
                    name = here.pending.pop()
                    self._enter(here.descriptor, name, f"{here.path}{name}/")
                else:
                    self._leave(self._stack.pop())
        finally:
            for left in reversed(self._stack):
                self._leave(left)
        return self._tally

    def _enter(self, above: int | None, name: str, path: str) -> None:
        """Open a folder, change its files, and put it on the stack with the folders in it still to do."""
        try:
            handle = os.open(name, _HANDLE | os.O_DIRECTORY, dir_fd=above)
        except OSError as error:
            if above is None:
                raise
            self._failed(path, error)
            return
        try:
            here = self._opened(handle, path)
        except OSError as error:
            self._failed(path, error)
            return
        finally:
            os.close(handle)
        self._stack.append(here)
        try:
            self._files(here)
        except OSError as error:
            self._failed(path, error)

    def _opened(self, handle: int, path: str) -> _Folder:
        """The folder with its new mode; of one that is somebody else's the files may still be ours. Raises OSError."""
        facts = os.fstat(handle)
        before = stat.S_IMODE(facts.st_mode)
        mode = self._wanted(facts)
        try:
            # Its own owner may look into it, if need be after giving himself leave; that is taken back at the end.
            _chmod(handle, mode | _LIST, facts)
            self._tally.folders += mode != before
        except OSError as error:
            self._failed(path, error)
            mode = before
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        return _Folder(path=path, descriptor=descriptor, mode=mode)

    def _files(self, here: _Folder) -> None:
        """The loop that every file passes. Raises OSError where the disk does not give the listing."""
        with os.scandir(here.descriptor) as listing:
            for item in listing:
                if item.is_dir(follow_symlinks=False):
                    here.pending.append(item.name)
                elif item.is_file(follow_symlinks=False):
                    try:
                        self._file(here, item)
                    except OSError as error:
                        self._failed(f"{here.path}{item.name}", error)

    def _file(self, here: _Folder, item: os.DirEntry[str]) -> None:
        facts = item.stat(follow_symlinks=False)
        self._tally.shared += facts.st_nlink > 1
        if self._wanted(facts) == stat.S_IMODE(facts.st_mode):
            return
        handle = os.open(item.name, _HANDLE, dir_fd=here.descriptor)
        try:
            facts = os.fstat(handle)
            if stat.S_ISREG(facts.st_mode):
                _chmod(handle, self._wanted(facts), facts)
                self._tally.files += 1
        finally:
            os.close(handle)

    def _leave(self, here: _Folder) -> None:
        try:
            if stat.S_IMODE(os.fstat(here.descriptor).st_mode) != here.mode:
                os.fchmod(here.descriptor, here.mode)
        except OSError as error:
            self._failed(here.path, error)
        finally:
            os.close(here.descriptor)

    def _failed(self, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # what vanishes meanwhile needs no seal
            self._tally.failed.append(f"{path.rstrip('/') or '.'}: {error.strerror or error}")


def _chmod(handle: int, mode: int, facts: os.stat_result) -> None:
    """Through the descriptor, which is of no use to `fchmod`: it was opened without permission to read."""
    if mode == stat.S_IMODE(facts.st_mode):
        return
    try:
        os.chmod(f"/proc/self/fd/{handle}", mode)  # noqa: PTH101 - no path but a descriptor
    except FileNotFoundError as error:
        raise OSError(errno.ENOSYS, "it takes /proc, which is not mounted") from error
