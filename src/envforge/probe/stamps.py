"""What every file of a prefix looks like, by one walk that reads no file: the quick half of an audit."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Mapping
from pathlib import Path

from envforge.model.drift import Stamp
from envforge.system.memory import uncollected

_KIND = 0o170000  # the bits that `stat.S_IFMT` keeps
_KINDS = frozenset({stat.S_IFREG, stat.S_IFLNK})


def stamps(prefix: Path) -> dict[str, Stamp]:
    """Path (POSIX, relative) -> stamp of every regular file and symlink of ``prefix``, a symlink to which is resolved.

    Bytecode in ``__pycache__`` is left out, since compiling rewrites it. No symlink below is followed; what vanishes
    meanwhile, cannot be listed or is a special file is left out too: it reads as gone. Nothing is raised.
    """
    with uncollected():
        return _stamps(os.path.realpath(prefix))


def _stamps(root: str) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            # Through a descriptor every stat looks up one name instead of the whole path.
            descriptor = os.open(f"{root}/{folder.rstrip('/')}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            folders += _read(found, folder, descriptor)
        except OSError:
            continue  # the disk does not give the rest of this folder
        finally:
            os.close(descriptor)
    return found


def _read(found: dict[str, Stamp], folder: str, descriptor: int) -> list[str]:
    """Add the files of one folder and return its folders: the loop that every file passes."""
    folders = []
    cached = folder.endswith("__pycache__/")
    with os.scandir(descriptor) as listing:
        for item in listing:
            name = item.name
            if cached and name.endswith(".pyc"):
                continue
            if item.is_dir(follow_symlinks=False):
                folders.append(f"{folder}{name}/")
                continue
            try:
                facts = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if facts.st_mode & _KIND in _KINDS:
                found[folder + name] = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
    return folders


def differing(
    seen: Mapping[str, Hashable], now: Mapping[str, Hashable]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Of two tables of paths: those that look otherwise now, those that are gone, and those that are new; each sorted.

    A ctime also moves where another environment links to the same file: what looks otherwise need not differ.
    """
    if seen == now:
        return (), (), ()  # as nearly always: without a set of all that lies there
    gone = seen.keys() - now.keys()
    new = now.keys() - seen.keys()
    changed = {path for path, _ in now.items() - seen.items()} - new
    return tuple(sorted(changed)), tuple(sorted(gone)), tuple(sorted(new))
