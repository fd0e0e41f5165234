"""One writer for an environment at a time, known by name to who comes second."""

from __future__ import annotations

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
