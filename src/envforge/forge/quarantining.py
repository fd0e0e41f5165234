"""Damaged records: moved aside by a command that changes the environment, which says so and goes on without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from envforge.model.progress import Note
from envforge.store import profiles as kept_profiles
from envforge.store import quarantine, seen, snapshots
from envforge.store.layout import Home

from .shop import Shop

_WITHOUT = "this goes on without it"


def journals(shop: Shop, name: str) -> None:
    """Begin every journal of ``name`` anew that cannot be read; the caller holds the lock. Raises EnvforgeError."""
    home = shop.home
    for generation in home.generations(name):
        moved = quarantine.journal(home, name, generation)
        if moved is not None:
            _say(shop, f"the journal of `{name}/{generation}`", moved, "what of it can be read is kept")


def records(shop: Shop, name: str, generation: int) -> None:
    """Move aside what else cannot be read of a generation whose records nobody needs any more; raises EnvforgeError.

    What a newer envforge wrote is not touched.
    """
    for what, path in list(_damaged(shop.home, name, generation)):
        moved = quarantine.aside(shop.home, name, generation, path)
        _say(shop, f"{what} of `{name}/{generation}`", moved, _WITHOUT)


def table(shop: Shop, name: str, generation: int, step: int) -> None:
    """The same for a table of files."""
    read = partial(snapshots.read, shop.home, name, generation, step, files=True)
    if quarantine.damaged(read):
        path = snapshots.table_path(shop.home, name, generation, step)
        moved = quarantine.aside(shop.home, name, generation, path)
        _say(shop, f"the table of files of `{name}/{generation}`", moved, _WITHOUT)


def _damaged(home: Home, name: str, generation: int) -> Iterator[tuple[str, Path]]:
    from .profiles import recorded  # noqa: PLC0415 - who only switches reads no profile, which costs more than all else

    def bad(read: Callable[..., object], *more: object, **named: object) -> bool:
        return quarantine.damaged(partial(read, home, name, generation, *more, **named))

    if bad(recorded):
        yield "the profile", kept_profiles.path(home, name, generation)
    if seen.path(home, name, generation).is_dir():
        yield "what was seen", seen.path(home, name, generation)  # of a file the next audit makes a new one
    last = None
    for step in snapshots.numbers(home, name, generation):
        if bad(snapshots.read, step):
            yield "the snapshot", snapshots.path(home, name, generation, step)
        else:
            last = step
    if last is not None and bad(snapshots.read, last, files=True):
        yield "the table of files", snapshots.table_path(home, name, generation, last)


def _say(shop: Shop, what: str, moved: Path, then: str) -> None:
    shop.tell(Note(text=f"{what} is damaged: it was moved to `{moved}`, and {then}", level="warning"))
