"""The very files of a lock, several at once, for who wants to carry them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envforge.model.errors import EnvforgeError, InterruptedByUserError
from envforge.model.export import built
from envforge.model.progress import Working
from envforge.model.state import Distribution

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

    def all(self, file: Path) -> dict[str, Path]:
        """sha256 -> where it lies. Raises EnvforgeError ``bundle-incomplete``."""
        self._shop.tell(Working(what=self._what))
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            try:
                told = dict(zip(self._wanted, pool.map(self._one, self._wanted.values()), strict=True))
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._shop.tell(Working(what=None))
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

    def _one(self, item: Distribution) -> Path | str:
        """Where the file lies, or why it cannot be had."""
        sha256 = str(item.sha256)
        try:
            if built(item):
                return self._work.built.path(sha256)
            return self._work.router.fetch(self._work.router.locked(item), self._folder, self._more)
        except InterruptedByUserError:
            raise
        except EnvforgeError as error:
            return f"{error.message}: {error.cause}" if error.cause else error.message

    def _more(self, count: int) -> None:
        if self._stop.is_set():
            raise InterruptedByUserError("interrupted", "interrupted")
        with self._guard:
            self._done += count
            self._shop.tell(Working(what=self._what, done=self._done, total=self._total or None))
