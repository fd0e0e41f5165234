"""What the system's loader would do with the compiled files of an environment, told from what they say (ld.so(8))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from envforge.model.native import Elf
from envforge.model.state import is_package

from .host_libraries import HostLibraries
from .library_facts import PRELOADERS

Owner = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """What comes with one file: itself and all that it needs (keys), and the names that were not found."""

    keys: frozenset[str]
    missing: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """``objects``: path relative to ``root``, a real path, -> file that can be loaded there; ``owners``: of each.

    A key is such a path, or the absolute one of a library of the host. ``requires``: owner -> owners that its metadata
    names, extras included. ``folders``: where the RPATH of the Python leads, for all that it loads.
    """

    root: str
    objects: Mapping[str, Elf]
    owners: Mapping[str, Owner]
    requires: Mapping[str, frozenset[str]]
    host: HostLibraries
    folders: tuple[str, ...] = ()
    _by_owner: dict[Owner, list[str]] = field(default_factory=dict)
    _loaded: dict[Owner, dict[str, str]] = field(default_factory=dict)
    _there: dict[str, str | None] = field(default_factory=dict)
    _found: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def elf(self, key: str) -> Elf:
        return self.host.elf(key) if key.startswith("/") else self.objects[key]

    def find(self, key: str, name: str, above: tuple[str, ...] = ()) -> str | None:
        """The key of the library ``name`` that ``key`` needs, None where there is none.

        ``above``: what it was loaded by, the nearest first, whose RPATH counts too.
        """
        if key.startswith("/"):
            return self.host.find(name, self.folders_of(key))
        if (key, name) not in self._found:
            self._found[key, name] = self._search(key, name)
        hit = self._found[key, name]
        if hit is not None or self.objects[key].runpath:
            return hit
        folders = (folder for each in above if not self.elf(each).runpath for folder in self.folders_of(each))
        return next(filter(None, (self._in(folder, name) for folder in folders)), None)

    def _search(self, key: str, name: str) -> str | None:
        inherited = () if self.objects[key].runpath else self.folders
        for folder in (*self.folders_of(key), *inherited):
            hit = self._in(folder, name)
            if hit is not None:
                return hit
        # What the importing package has loaded before counts by its SONAME alone, wherever it lies.
        return self.loaded(self.owners.get(key)).get(name) or self.host.find(name)

    def closure(self, key: str) -> Closure:
        """All that is loaded with ``key``."""
        keys: set[str] = set()
        missing: set[str] = set()
        todo: list[tuple[str, tuple[str, ...]]] = [(key, ())]
        while todo:
            each, above = todo.pop()
            if each in keys:
                continue
            keys.add(each)
            for name in self.elf(each).needed:
                hit = self.find(each, name, above)
                if hit is None:
                    missing.add(name)
                else:
                    todo.append((hit, (each, *above)))
        return Closure(keys=frozenset(keys), missing=frozenset(missing))

    def loaded(self, owner: Owner) -> Mapping[str, str]:
        """SONAME -> key, of what may be in a process that imports ``owner``: its own, and of all that it requires."""
        if owner not in self._loaded:
            found: dict[str, str] = {}
            for each in self._reach(owner):
                for path in self._of(each):
                    soname = self.objects[path].soname
                    if soname is not None:
                        found.setdefault(soname, path)
            self._loaded[owner] = found
        return self._loaded[owner]

    def folders_of(self, key: str) -> tuple[str, ...]:
        """Its RUNPATH, or else its RPATH, as absolute folders."""
        file = self.elf(key)
        place = os.path.dirname(key if key.startswith("/") else f"{self.root}/{key}")  # noqa: PTH120 - text
        return tuple(_expanded(folder, place) for folder in (file.runpath or file.rpath))

    def _of(self, owner: Owner) -> list[str]:
        if not self._by_owner:
            for path in self.objects:
                self._by_owner.setdefault(self.owners.get(path), []).append(path)
        return self._by_owner.get(owner, [])

    def _reach(self, owner: Owner) -> Iterator[Owner]:
        if owner is None or is_package(owner):
            # Of nobody, or of conda, whose packages lie in one tree: whatever is there.
            yield from {self.owners.get(path): None for path in self.objects}
            return
        seen: dict[str, None] = {}
        todo = [owner]
        while todo:
            each = todo.pop(0)
            if each not in seen:
                seen[each] = None
                todo += sorted(self.requires.get(each, ()))
        yield from seen
        for pattern in {PRELOADERS[each] for each in seen if each in PRELOADERS}:
            yield from (each for each in self.requires if fnmatchcase(each, pattern) and each not in seen)

    def _in(self, folder: str, name: str) -> str | None:
        """The key of a loadable file in an absolute folder."""
        path = f"{folder}/{name}"
        if path not in self._there:
            self._there[path] = self._key(path)
        return self._there[path]

    def _key(self, path: str) -> str | None:
        real = os.path.realpath(path)
        if real.startswith(f"{self.root}/"):
            inside = real[len(self.root) + 1 :]
            return inside if inside in self.objects else None
        return self.host.find(real)


def _expanded(folder: str, place: str) -> str:
    return os.path.normpath(folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", place))


def rpath(file: Elf, path: str) -> tuple[str, ...]:
    """The folders of a program's RPATH, which count for all that it loads; none where it has a RUNPATH."""
    place = os.path.dirname(path)  # noqa: PTH120 - text in, text out
    return () if file.runpath else tuple(_expanded(folder, place) for folder in file.rpath)


def loadable(objects: Mapping[str, Elf], machine: str) -> Mapping[str, Elf]:
    """Those that a loader of this machine would take."""
    return {path: each for path, each in objects.items() if each.trouble is None and each.machine == machine}


def offered(elves: Iterable[Elf]) -> dict[str, set[str | None]]:
    """Symbol -> the versions in which it is defined, None for none."""
    found: dict[str, set[str | None]] = {}
    for each in elves:
        for group in each.offers:
            for name in group.each():
                found.setdefault(name, set()).add(group.version)
    return found
