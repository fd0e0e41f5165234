"""Take an environment away: its link first, then its generations, its records last."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.views import RemoveView
from envforge.probe import processes
from envforge.store import locking

from . import condas
from .listing import sizes
from .path import require
from .shop import Shop

_NAMED = 5


def remove(shop: Shop, name: str, *, in_use: bool = False) -> Result[RemoveView]:
    """Remove link, generations and records of ``name``.

    Raises UsageError ``no-such-environment``; EnvforgeError ``locked``, or ``in-use`` where a process uses it and
    ``in_use`` does not say that this is known; LeftoverError ``leftover`` naming what could not be removed (its
    records then stay, so that `remove` can be called again).
    """
    home = shop.home
    with locking.hold(home, require(home, name), f"remove {name}"):
        home.refuse_foreign(name)
        if not in_use:
            refuse_in_use(home.generations_root / name, f"`{name}`", f"remove {name}")
        generations = home.generations(name)
        for place in filter(None, (home.adopted(name, number) for number in generations)):
            shop.tell(Note(text=f"`{place}` was adopted: all of it stays there"))
        prefixes, records = home.generations_root / name, home.records_root / name
        own, _ = sizes(prefixes)
        shop.tell(Working(what=f"removing `{name}`"))
        home.unlink(name)
        condas.unlist(shop, name)
        for folder in (prefixes, records):
            left = delete(folder)
            if left:
                raise LeftoverError(
                    "leftover",
                    f"`{name}` is no environment any more, but {len(left)} of its files could not be removed",
                    cause="\n".join([*left[:_NAMED], *(["..."] if len(left) > _NAMED else [])]),
                    hint=f"make them writable, then `envforge remove {name}` again",
                )
        shop.tell(Working(what=None))
    return Result(command="remove", data=RemoveView(environment=name, generations=generations, bytes=own))


def refuse_in_use(folder: Path, what: str, command: str) -> None:
    """Raise EnvforgeError ``in-use`` where a process uses ``folder``, naming the processes; ``what`` names it."""
    users = processes.using(folder)
    if users:
        raise EnvforgeError(
            "in-use",
            f"{what} is in use",
            cause="\n".join(f"process {user.pid} of {user.user}: {' '.join(user.argv)}" for user in users[:_NAMED]),
            hint=f"end what uses it, or `envforge {command} --in-use`",
        )


def delete(folder: Path) -> list[str]:
    """Remove a folder and all in it, read-only folders too; returns what is left, each with the reason.

    No symlink is followed, so of what was adopted only the symlink to it goes.
    """
    left: list[str] = []

    def again(function: Callable[..., object], path: str, error: BaseException) -> None:
        # A folder without write permission keeps its entries: give the permission, and try once more.
        try:
            for place in (os.path.dirname(path), path):  # noqa: PTH120 - shutil speaks text
                # Only to folders: a file needs none to go, and other environments may have it, too.
                if os.path.isdir(place) and not os.path.islink(place):  # noqa: PTH112, PTH114 - as above
                    os.chmod(place, stat.S_IMODE(os.lstat(place).st_mode) | stat.S_IRWXU)  # noqa: PTH101 - as above
            if function in {os.open, os.scandir, os.lstat}:
                shutil.rmtree(path)
            else:
                function(path)
        except OSError as second:
            left.append(f"{path}: {second.strerror or error}")

    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        _rmtree(folder, again)
    # What was refused inside explains why the folders above it are not empty: only the cause is worth naming.
    causes = [line for line in left if "not empty" not in line.lower()]
    return causes or left


def _rmtree(folder: Path, again: Callable[[Callable[..., object], str, BaseException], None]) -> None:
    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=again)
    else:
        shutil.rmtree(folder, onerror=lambda function, path, info: again(function, path, info[1]))
