"""`prune`: failed and old generations, what was left behind, and what of the cache nothing refers to any more."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from envforge.engines.surplus import Held, Surplus, surplus
from envforge.engines.uv_cache import UvCache
from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.state import shown
from envforge.model.views import Pruned, PruneView, Skipped, Unrestorable
from envforge.store import models as store
from envforge.store import snapshots
from envforge.store.layout import Home
from envforge.store.locking import claim, hold

from .generations import linked
from .listing import Freed
from .profiles import recorded
from .pruning import Spare, in_use, spare, take
from .remove import delete
from .shop import Shop

_NOT_OURS = frozenset({"locked", "not-a-link", "planted-link"})
_NAMED = 5


def prune(shop: Shop, *, dry_run: bool = False, used: bool = False) -> Result[PruneView]:
    """Remove what no environment of the home needs; with ``dry_run`` only say what that would be.

    ``used``: also generations that a process uses. An environment that is being changed is skipped and named, and so
    is the cache while anything is planned or built. Raises LeftoverError naming what could not be removed,
    EnvforgeError ``home-not-writable``.
    """
    work = _Prune(shop, dry_run=dry_run, used=used)
    for name in shop.home.names():
        work.environment(name)
    work.cache()
    work.models()
    shop.tell(Working(what=None))
    if work.left:
        raise LeftoverError(
            "leftover",
            f"{len(work.left)} files could not be removed",
            cause="\n".join([*work.left[:_NAMED], *(["..."] if len(work.left) > _NAMED else [])]),
            hint="make them writable, then `envforge prune` again",
        )
    data = PruneView(
        dry_run=dry_run,
        bytes=sum(each.bytes for each in work.removed),
        removed=tuple(work.removed),
        skipped=tuple(work.skipped),
        unrestorable=work.unrestorable,
    )
    return Result(command="prune", data=data)


class _Prune:
    """What came of it so far. ``left``: what could not be removed, each with the reason."""

    def __init__(self, shop: Shop, *, dry_run: bool, used: bool) -> None:
        self._shop = shop
        self._home = shop.home
        self._dry_run = dry_run
        self._used = used
        self._freed = Freed()
        self._going: set[tuple[str, int]] = set()
        self.removed: list[Pruned] = []
        self.skipped: list[Skipped] = []
        self.left: list[str] = []
        self.unrestorable: tuple[Unrestorable, ...] = ()

    def environment(self, name: str) -> None:
        try:
            with hold(self._home, name, "prune"):
                self._home.refuse_foreign(name)
                found, stays = spare(self._home, name, self._shop.settings.keep_generations)
                self.skipped += stays
                for item in found:
                    kept = None if self._used else in_use(self._home, item)
                    if kept is not None:
                        self.skipped.append(kept)
                        continue
                    self._shop.tell(Working(what=f"looking at {item.what(self._home)}"))
                    size = self._freed.add(item.path)
                    if item.generation is not None:
                        self._going.add((name, item.generation))
                    self.removed.append(
                        Pruned(
                            kind=item.kind,
                            what=item.what(self._home),
                            environment=name,
                            generation=item.generation,
                            bytes=size,
                        )
                    )
                    if not self._dry_run:
                        self.left += take(self._home, item)
                        self._freed = Freed()  # what is gone no longer counts as a link
                if not self._dry_run and name not in self._home.environments():
                    with suppress(OSError):
                        (self._home.generations_root / name).rmdir()
        except EnvforgeError as error:
            if error.code not in _NOT_OURS:
                raise
            why = f"{error.message}: {error.cause}" if error.cause else error.message
            self.skipped.append(Skipped(what=name, environment=name, why=why))

    def cache(self) -> None:
        cache = self._shop.settings.cache
        if not cache.is_dir():
            return
        if not Path(os.path.realpath(cache)).is_relative_to(os.path.realpath(self._home.root)):
            # Whose environments else were built from it, nobody here knows.
            self.skipped.append(Skipped(what="cache", why=f"`{cache}` lies outside the home: other homes may use it"))
            return
        with claim(cache) as alone:
            if not alone:
                self.skipped.append(Skipped(what="cache", why="it is in use: something is being planned or built"))
                return
            try:
                staying = self._staying()
                self._clean(cache, surplus(cache, _held(self._home, staying)), staying)
            except EnvforgeError as error:
                why = f"{error.message}: {error.cause}" if error.cause else error.message
                self.skipped.append(Skipped(what="cache", why=why))

    def models(self) -> None:
        """What no profile of a generation that stays names."""
        if not self._home.models.is_dir():
            return
        with claim(self._home.models) as alone:
            try:
                self._models(list(store.places(self._home)) if alone else None)
            except EnvforgeError as error:
                why = f"which of them are wanted is not known: {error.message}"
                self.skipped.append(Skipped(what="models", why=why))

    def _models(self, there: list[store.Place] | None) -> None:
        if there is None:
            self.skipped.append(Skipped(what="models", why="they are in use: something is being fetched"))
            return
        wanted = {
            store.place(self._home, model).what
            for name, generations in self._staying().items()
            for number in generations
            for model in recorded(self._home, name, number).models
        }
        for place in (place for place in there if place.what not in wanted):
            item = Spare(kind="orphan", environment="", path=place.folder)
            kept = None if self._used else in_use(self._home, item)
            if kept is not None:
                self.skipped.append(replace(kept, environment=None))
                continue
            size = sum(map(self._freed.add, (place.folder, place.part, place.record)))
            self.removed.append(Pruned(kind="model", what=place.what, bytes=size))
            if not self._dry_run:
                # Half of it is never taken for all of it: in that folder nobody looks for a model.
                self.left += delete(place.open(self._home))

    def _staying(self) -> Mapping[str, frozenset[int]]:
        """Name -> generations whose files may still be wanted: those that are there, and the one in use."""
        found = {}
        for name in self._home.environments():
            current = linked(self._home, name)
            there = {number for number in self._home.prefixes(name) if (name, number) not in self._going}
            found[name] = frozenset(there if current is None else {*there, current})
        return found

    def _clean(self, cache: Path, going: Surplus, staying: Mapping[str, frozenset[int]]) -> None:
        lost = _unrestorable(self._home, staying, going.hashes)
        names = sorted({*going.uv, *going.own} - {""})
        parts = {name: (*going.uv.get(name, ()), *going.own.get(name, ())) for name in names}
        parts["leftovers of builds"] = (*going.debris, *going.own.get("", ()))
        gone = [
            Pruned(kind="cache", what=name, bytes=sum(map(self._freed.add, paths)))
            for name, paths in parts.items()
            if paths
        ]
        if not self._dry_run:
            self._shop.tell(Working(what="cleaning the cache"))
            UvCache(cache / "uv").clean(going.names, going.wheels)
            for path in (path for paths in going.own.values() for path in paths):
                if path.is_dir():
                    self.left += delete(path)
                else:
                    with suppress(FileNotFoundError):
                        path.unlink()
        self.removed += gone
        self.unrestorable = lost


def _held(home: Home, staying: Mapping[str, frozenset[int]]) -> Held:
    """What the snapshots of the generations that stay refer to. Raises EnvforgeError where one cannot be read."""
    names: set[str] = set()
    hashes: set[str] = set()
    unknown: set[tuple[str, str]] = set()
    for name, generations in staying.items():
        for number in generations:
            for step in snapshots.numbers(home, name, number):
                for item in snapshots.read(home, name, number, step).state.values():
                    if item.origin is not None and item.origin.kind == "conda":
                        continue  # its package holds it
                    names.add(item.name)
                    if item.sha256 is None:
                        unknown.add((item.name, item.version))
                    hashes |= {item.sha256 or "", (item.origin.sha256 if item.origin else None) or ""}
    return Held(names=frozenset(names), hashes=frozenset(hashes - {""}), unknown=frozenset(unknown))


def _unrestorable(
    home: Home, staying: Mapping[str, frozenset[int]], hashes: frozenset[str]
) -> tuple[Unrestorable, ...]:
    """Snapshots of other generations whose locks name a file of ``hashes``, on the way to them or at their end."""
    found = []
    for name in home.environments():
        for number in home.generations(name):
            if number in staying[name]:
                continue
            lost: dict[str, bool] = {}  # what -> whether it was built here
            for step in snapshots.numbers(home, name, number):
                try:
                    state = snapshots.read(home, name, number, step).state
                except EnvforgeError:
                    break  # what cannot be read could not be restored before
                for item in state.values():
                    # A Python's own pip comes with it.
                    if item.sha256 in hashes and not (item.origin and item.origin.kind == "python"):
                        lost[f"{shown(item.name)}=={item.version}"] = item.origin is not None
                if lost and step:
                    found.append(
                        Unrestorable(
                            snapshot=f"{name}/{number}.{step}",
                            distributions=tuple(sorted(lost)),
                            built=tuple(sorted(each for each, built in lost.items() if built)),
                        )
                    )
    return tuple(found)
