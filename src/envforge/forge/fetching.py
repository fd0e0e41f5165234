"""The very files of a lock, several at once, for who wants to carry them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue

from envforge.engines import archives
from envforge.model.errors import EnvforgeError
from envforge.model.export import built
from envforge.model.progress import Working
from envforge.model.state import Distribution, is_package

from . import packages
from .bench import Bench
from .shop import Shop

_AT_ONCE = 4
_NAMED = 40


class Fetching:
    """``wanted``: sha256 -> what is installed from that file. What must be fetched for it goes to ``folder``."""

    def __init__(self, shop: Shop, work: Bench, folder: Path, wanted: Mapping[str, Distribution]) -> None:
        self._shop = shop
        self._work = work
        self._folder = folder
        self._wanted = wanted
        self._what = f"fetching {len(wanted)} files"
        self._total = sum(item.size or 0 for item in wanted.values())
        self._done = 0
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._left: SimpleQueue[Distribution] = SimpleQueue()
        for item in wanted.values():
            self._left.put(item)
        self._told: dict[str, Path | str] = {}
        self._failed: list[Exception] = []

    def all(self, file: Path) -> dict[str, Path]:
        """sha256 -> where it lies. Raises EnvforgeError ``bundle-incomplete``, OSError."""
        self._shop.tell(Working(what=self._what))
        # An interrupted command waits for no download that hangs, so these are no threads of a pool.
        threads = [threading.Thread(target=self._some, daemon=True) for _ in range(_AT_ONCE)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self._stop.set()
        self._shop.tell(Working(what=None))
        if self._failed:
            raise self._failed[0]
        told = self._told
        lacking = {str(self._wanted[sha256].file): each for sha256, each in told.items() if isinstance(each, str)}
        if lacking:
            lines = [f"`{name}`: {lacking[name]}" for name in sorted(lacking)[:_NAMED]]
            more = [f"... and {len(lacking) - _NAMED} more"] if len(lacking) > _NAMED else []
            number = "one file" if len(lacking) == 1 else f"{len(lacking)} files"
            raise EnvforgeError(
                "bundle-incomplete",
                f"{number} of `{file}` cannot be had",
                cause="\n".join([*lines, *more]),
                hint="run the same command again: what was fetched is kept",
            )
        return {sha256: each for sha256, each in told.items() if isinstance(each, Path)}

    def _some(self) -> None:
        """Bring one file after another until none is left."""
        while not self._stop.is_set():
            try:
                item = self._left.get_nowait()
                self._told[str(item.sha256)] = self._one(item)
            except Empty:
                return
            except Exception as error:  # noqa: BLE001 - `all` raises it
                self._failed.append(error)
                self._stop.set()

    def _one(self, item: Distribution) -> Path | str:
        """Where the file lies, or why it cannot be had."""
        try:
            if is_package(item.name):
                channels = packages.engine(self._work).channels
                return archives.fetch(
                    self._work.client, channels, item, self._folder, self._more, offline=self._work.offline
                )
            if built(item):
                return self._work.built.path(str(item.sha256))
            return self._work.router.fetch(self._work.router.locked(item), self._folder, self._more)
        except EnvforgeError as error:
            return f"{error.message}: {error.cause}" if error.cause else error.message

    def _more(self, count: int) -> None:
        with self._guard:
            self._done += count
            if not self._stop.is_set():
                self._shop.tell(Working(what=self._what, done=self._done, total=self._total or None))
