"""One writer for an environment at a time, known by name to who comes second; nobody in a cache that is cleaned."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.model.errors import EnvforgeError
from envforge.system import clock, environ

from .atomic import not_writable, write_text
from .layout import Home, check_name, planted


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock: ``since`` is ISO 8601 in UTC."""

    pid: int
    command: str
    user: str
    since: str


@contextmanager
def hold(home: Home, name: str, command: str) -> Iterator[None]:
    """Hold the environment's lock for the duration; it falls with the process, however that ends.

    Raises EnvforgeError ``locked``, at once, naming the holder, or ``home-not-writable`` or ``planted-link``.
    """
    import filelock  # noqa: PLC0415 - commands that only read need no lock

    # The lock file itself is emptied by whoever tries to take it: the holder's name lies beside it.
    path = home.locks_root / f"{check_name(name)}.lock"
    home.make_folder(path.parent)
    if path.is_symlink():
        raise planted(path)
    lock = filelock.FileLock(path, is_singleton=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise _locked(home, name) from error
    except (OSError, NotImplementedError) as error:
        reason = error if isinstance(error, OSError) else OSError(0, "this file system has no locks")
        raise not_writable(path, reason) from error
    try:
        write_text(_note(home, name), _describe(command))
        yield
    finally:
        with suppress(OSError):
            _note(home, name).unlink(missing_ok=True)
        lock.release()


@contextmanager
def share(cache: Path) -> Iterator[None]:
    """Use the cache for the duration, together with others; waits while somebody cleans it."""
    with suppress(OSError):  # who then wants to write there says what is wrong
        cache.mkdir(parents=True, exist_ok=True)
    with _flocked(cache, fcntl.LOCK_SH):
        yield


@contextmanager
def claim(cache: Path) -> Iterator[bool]:
    """Have the cache alone for the duration; False, at once, where others use it or it takes no locks."""
    with _flocked(cache, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        yield alone


@contextmanager
def _flocked(cache: Path, mode: int) -> Iterator[bool]:
    """True while the lock is held, which falls with the process; False where it cannot be had."""
    descriptor = None
    try:
        descriptor = os.open(cache / ".in-use", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, mode)
        had = True
    except OSError:
        had = False
    try:
        yield had
    finally:
        if descriptor is not None:
            os.close(descriptor)


def holder(home: Home, name: str) -> Holder | None:
    """Who last took the lock and has not given it back; None if nobody or not readable."""
    try:
        data: Any = json.loads(_note(home, name).read_text(encoding="utf-8"))
        return Holder(
            pid=int(data["pid"]), command=str(data["command"]), user=str(data["user"]), since=str(data["since"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note(home: Home, name: str) -> Path:
    return home.locks_root / f"{check_name(name)}.holder.json"


def _describe(command: str) -> str:
    who = {"pid": os.getpid(), "command": command, "user": environ.user(), "since": clock.now()}
    return json.dumps(who, sort_keys=True) + "\n"


def _locked(home: Home, name: str) -> EnvforgeError:
    who = holder(home, name)
    cause = "another process holds its lock"
    hint = "wait until it has finished"
    if who is not None:
        cause = f"`envforge {who.command}` of user `{who.user}` holds its lock (process {who.pid}, since {who.since})"
        hint = f"wait until it has finished, or end process {who.pid}"
    return EnvforgeError("locked", f"environment `{name}` is being changed", cause=cause, hint=hint)
