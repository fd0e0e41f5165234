"""All environments of a home, and what they take."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from envforge.model.result import Result
from envforge.model.views import EnvironmentEntry, ListView

from .generations import linked
from .history import FOLDER_GONE, generation, last_verdict, profile_name
from .shop import Shop


def listing(shop: Shop, *, size: bool = False) -> Result[ListView]:
    """Every environment with its generation in use, profile and last verdict; with ``size`` also the bytes."""
    entries = tuple(_entry(shop, name, size=size) for name in shop.home.environments())
    return Result(command="list", data=ListView(home=str(shop.home.root), environments=entries))


def _entry(shop: Shop, name: str, *, size: bool) -> EnvironmentEntry:
    home = shop.home
    number = home.current(name)
    known = home.generations(name)
    gone = linked(home, name) if number is None else None
    shown = number or gone or (known[-1] if known else None)
    own, shared = sizes(home.prefix(name, number)) if size and number is not None else (None, None)
    return EnvironmentEntry(
        name=name,
        generation=number,
        profile=profile_name(home, name, shown) if shown is not None else None,
        verdict=_verdict(shop, name, shown, gone=gone is not None),
        bytes=own,
        shared=shared,
    )


def _verdict(shop: Shop, name: str, shown: int | None, *, gone: bool) -> str:
    if shown is None:
        return "no records"
    return FOLDER_GONE if gone else last_verdict(shop.home, name, shown, generation(shop.home, name, shown).verdict)


def sizes(folder: Path) -> tuple[int, int]:
    """Bytes that only ``folder`` holds, and bytes in files that have a link outside of it too.

    What cannot be read counts nothing.
    """
    files = {(status.st_dev, status.st_ino): status.st_size for status in _files(folder)}
    own = Freed().add(folder)
    return own, sum(files.values()) - own


class Freed:
    """Counts what removing one folder or file after the other frees, before any of them is gone."""

    def __init__(self) -> None:
        self._links: Counter[tuple[int, int]] = Counter()

    def add(self, path: Path) -> int:
        """Bytes in files whose last link goes with ``path``, given that all that was added before is gone."""
        freed = 0
        for status in _files(path):
            key = (status.st_dev, status.st_ino)
            self._links[key] += 1
            if self._links[key] == status.st_nlink:
                freed += status.st_size
        return freed


def _files(path: Path) -> Iterator[os.stat_result]:
    """All that is no folder, in ``path`` or ``path`` itself."""
    waiting = [str(path)]
    if path.is_symlink() or path.is_file():
        yield path.lstat()
        return
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False)
        except OSError:
            continue
