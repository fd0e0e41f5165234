"""The live line of an engine at work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from envforge.model.progress import Working

from .shop import Shop

_MANY = 10_000_000


class Watched:
    """Tell, twice a second, how many bytes the engine's process has written (unpacked, so more than it fetches)."""

    def __init__(self, shop: Shop, what: str, to_fetch: int) -> None:
        self._shop = shop
        self._what = f"{what}, {_megabytes(to_fetch)} to fetch" if to_fetch else what
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Callable[[int], None]:
        self._shop.tell(Working(what=self._what))
        return self._watch

    def _watch(self, pid: int) -> None:
        self._thread = threading.Thread(target=self._poll, args=(pid,), daemon=True)
        self._thread.start()

    def _poll(self, pid: int) -> None:
        while not self._stop.wait(0.5):
            try:
                lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            except OSError:
                return
            written = next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)
            self._shop.tell(Working(what=self._what, done=written))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._shop.tell(Working(what=None))


def _megabytes(count: int) -> str:
    """Bytes in MB, with a digit behind the point where there are few: ``0.7 MB``, ``4,912 MB``; never ``0.0 MB``."""
    return f"{count / 1e6:,.0f} MB" if count >= _MANY else f"{max(count / 1e6, 0.1):.1f} MB"
