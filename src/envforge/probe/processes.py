"""Who uses a prefix right now, from /proc."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from envforge.model.machine import Process

_PROC = Path("/proc")
_ACTIVE = (b"VIRTUAL_ENV=", b"CONDA_PREFIX=")


def using(prefix: Path) -> tuple[Process, ...]:
    """Processes, by pid, whose program, command line, working folder or mapped files lie in ``prefix``, or in which it
    is activated.

    A Python of a venv is found by its command line, since its program is the base interpreter's. Of other users'
    processes only what the kernel shows is seen; those that end meanwhile are left out.
    """
    real = os.path.realpath(prefix)
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        argv = _argv(entry)
        if _links_into(entry, real) or _started_from(argv, real) or _activated(entry, real) or _maps(entry, real):
            found.append(Process(pid=int(entry.name), user=_user(entry), argv=argv))
    return tuple(sorted(found, key=lambda process: process.pid))


def _inside(path: str, real: str) -> bool:
    return path == real or path.startswith(f"{real}/")


def _links_into(entry: Path, real: str) -> bool:
    for name in ("exe", "cwd"):
        try:
            if _inside(os.readlink(entry / name), real):  # noqa: PTH115 - the kernel's text, perhaps with `(deleted)`
                return True
        except OSError:
            continue
    return False


def _argv(entry: Path) -> tuple[str, ...]:
    try:
        raw = (entry / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in raw.rstrip(b"\0").split(b"\0")) if raw else ()


def _started_from(argv: tuple[str, ...], real: str) -> bool:
    """Whether program or script is named by a path into the prefix; its last part may be a symlink out of it."""
    folders = [word.rpartition("/")[0] or "/" for word in argv[:2] if word.startswith("/")]
    return any(_inside(os.path.realpath(folder), real) for folder in folders)


def _activated(entry: Path, real: str) -> bool:
    """Whether it runs with the prefix activated, as `envforge run` starts it: any program, a shell or a server."""
    try:
        words = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    prefixes = (os.fsdecode(word.partition(b"=")[2]) for word in words if word.startswith(_ACTIVE))
    return any(_inside(os.path.realpath(folder), real) for folder in prefixes if folder.startswith("/"))


def _maps(entry: Path, real: str) -> bool:
    try:
        return os.fsencode(f" {real}/") in (entry / "maps").read_bytes()
    except OSError:
        return False


def _user(entry: Path) -> str:
    try:
        number = entry.stat().st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
