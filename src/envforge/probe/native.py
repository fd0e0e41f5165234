"""The native closure of an environment: which libraries and symbols its compiled files need, and nothing provides."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from envforge.model.native import Asked, Compiled, Elf, Native, Symbols, Unfound, Unresolved
from envforge.model.state import Distribution, State
from envforge.system import environ
from envforge.system.memory import uncollected

from . import host_libraries
from .installed import canonical
from .library_facts import BUNDLED, DRIVER, DRIVER_SYMBOL
from .loader import Closure, Loader, Owner, loadable, offered, rpath

_PYTHON = "bin/python"
_LIKE = 4  # letters, at least, that a symbol shares with others of the library that should have it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Want = tuple[str, str | None, str | None]
"""A symbol, its version, and the library that it is bound to."""


def look(
    prefix: Path,
    objects: Mapping[str, Elf],
    owners: Mapping[str, Owner],
    state: State,
    asked: Collection[tuple[str, str]] = (),
) -> Native:
    """Judge the compiled files ``objects`` (path relative to ``prefix`` -> what was read of it) as one environment.

    ``owners``: of each path; ``asked``: symbol and library of every guard. Nothing is run but the host's `ldconfig -p`,
    nothing of the environment is loaded, nothing is raised.
    """
    with uncollected():
        return _look(os.path.realpath(prefix), objects, owners, state, asked)


def _look(
    root: str,
    objects: Mapping[str, Elf],
    owners: Mapping[str, Owner],
    state: State,
    asked: Collection[tuple[str, str]],
) -> Native:
    if not objects:
        return Native(asked=tuple(Asked(symbol=symbol, library=library) for symbol, library in asked))
    host = host_libraries.look()
    program = os.path.realpath(f"{root}/{_PYTHON}")
    python = host.elf(program)
    loader = Loader(
        root=root,
        objects=loadable(objects, environ.architecture()),
        owners=owners,
        requires={name: _named(item, state) for name, item in state.items()},
        host=host,
        folders=rpath(python, program),
    )
    judged = [path for path, each in sorted(loader.objects.items()) if each.kind != "object"]
    closures = {path: loader.closure(path) for path in judged}
    own = f"{root}/"
    start = program[len(own) :] if program.startswith(own) and program[len(own) :] in loader.objects else program
    return Native(
        objects=told(objects, owners),
        unfound=tuple(filter(None, (_unfound(loader, path) for path in judged))),
        unresolved=tuple(_unresolved(loader, closures, loader.closure(start).keys)),
        asked=tuple(_asked(loader.objects, symbol, library) for symbol, library in asked),
    )


def interpreter(prefix: Path) -> tuple[str, int, int, int] | None:
    """What differs once the Python of an environment is another file; None where there is none."""
    path = os.path.realpath(prefix / _PYTHON)
    try:
        facts = os.stat(path)  # noqa: PTH116 - as everywhere in probe
    except OSError:
        return None
    return (path, facts.st_size, facts.st_mtime_ns, facts.st_ino)


def told(objects: Mapping[str, Elf], owners: Mapping[str, Owner]) -> tuple[Compiled, ...]:
    """What is worth telling of each file, sorted by path."""
    return tuple(
        Compiled(
            path=path,
            owner=owners.get(path),
            kind=each.kind,
            machine=each.machine,
            trouble=each.trouble,
            code=each.code,
        )
        for path, each in sorted(objects.items())
    )


def _named(item: Distribution, state: State) -> frozenset[str]:
    """The installed distributions that the metadata of one names, whatever the marker: what is there may be loaded."""
    names = (match[0] for line in item.requires if (match := _NAME.match(line)) is not None)
    return frozenset(map(canonical, names)) & state.keys()


def _unfound(loader: Loader, path: str) -> Unfound | None:
    each = loader.objects[path]
    missing = tuple(name for name in each.needed if loader.find(path, name) is None)
    if not missing:
        return None
    folders = [folder for folder in loader.folders_of(path) if folder.startswith(f"{loader.root}/")]
    return Unfound(
        path=path,
        owner=loader.owners.get(path),
        libraries=missing,
        driver=all(DRIVER.fullmatch(name) for name in missing),
        sought=any(BUNDLED.fullmatch(name) or _is_there_otherwise(loader, folders, name) for name in missing),
    )


def _is_there_otherwise(loader: Loader, folders: Collection[str], name: str) -> bool:
    """Whether another version of a library lies where a file looks for it."""
    start = f"{name.partition('.so')[0]}.so"
    return any(
        path.rpartition("/")[2].startswith(start) and f"{loader.root}/{path.rpartition('/')[0]}" in folders
        for path in loader.objects
    )


def _unresolved(loader: Loader, closures: Mapping[str, Closure], everywhere: Collection[str]) -> Iterable[Unresolved]:
    """What no scope provides. ``everywhere``: keys of the Python and all that it needs, which every file sees."""
    base = offered(map(loader.elf, everywhere))
    names: dict[str | None, frozenset[str]] = {None: frozenset(base)}
    left: dict[str, list[Want]] = {}
    for path in closures:
        for group in loader.objects[path].wants:
            if group.version not in names:
                names[group.version] = _with(base, group.version)
            rest = names[group.version]
            more = [name for name in group.each() if name not in rest]
            if more:
                left.setdefault(path, []).extend((name, group.version, group.library) for name in more)
    index = _index(loader, closures, {name for wants in left.values() for name, _, _ in wants})
    needed = {key for path in closures for key in closures[path].keys - {path}}
    for path, wants in left.items():
        closure = closures[path]
        undriven = [name for name in closure.missing if not DRIVER.fullmatch(name)]
        if undriven or any(loader.elf(key).trouble for key in closure.keys):
            continue  # what is missing may have it: that is told, and this would say it again
        reach = closure.keys | set(loader.loaded(loader.owners.get(path)).values())
        bad = [want for want in wants if not _provided(index, want, reach)]
        if closure.missing:
            bad = [want for want in bad if not DRIVER_SYMBOL.fullmatch(want[0])]
        if bad:
            yield from _told(loader, path, bad, loaded=path in needed or _is_module(loader.objects[path]))


def _with(base: Mapping[str, set[str | None]], version: str | None) -> frozenset[str]:
    return frozenset(name for name, versions in base.items() if version in versions or None in versions)


def _index(
    loader: Loader, closures: Mapping[str, Closure], wanted: set[str]
) -> Mapping[str, list[tuple[str, str | None]]]:
    """Symbol -> the keys that define it, each with the version."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for key in sorted({*loader.objects, *(key for each in closures.values() for key in each.keys)}):
        for group in loader.elf(key).offers:
            for name in wanted.intersection(group.each()):
                found.setdefault(name, []).append((key, group.version))
    return found


def _provided(index: Mapping[str, list[tuple[str, str | None]]], want: Want, reach: Collection[str]) -> bool:
    name, version, _ = want
    return any(
        key in reach and (version is None or defined is None or defined == version)
        for key, defined in index.get(name, ())
    )


def _is_module(file: Elf) -> bool:
    """Whether Python can import it."""
    return any("PyInit_" in group.names for group in file.offers)


def _told(loader: Loader, path: str, wants: Iterable[Want], *, loaded: bool) -> Iterable[Unresolved]:
    """One for every library and version; a symbol that names no library goes with the one that has others like it."""
    needed = {name: key for name in loader.objects[path].needed if (key := loader.find(path, name)) is not None}
    groups: dict[tuple[str | None, str | None], list[str]] = {}
    for name, version, library in wants:
        groups.setdefault((library or _likely(loader, needed, name), version), []).append(name)
    for (library, version), symbols in groups.items():
        provider = needed.get(library or "")
        yield Unresolved(
            path=path,
            owner=loader.owners.get(path),
            symbols=tuple(sorted(symbols)),
            version=version,
            library=library,
            provider=provider,
            provides=loader.owners.get(provider or ""),
            loaded=loaded,
        )


def _likely(loader: Loader, needed: Mapping[str, str], symbol: str) -> str | None:
    """The library whose symbols begin most alike; None where none shares a few letters."""
    best, most = None, _LIKE - 1 + (3 if symbol.startswith("_Z") else 0)
    for name, key in needed.items():
        for group in loader.elf(key).offers:
            for other in group.each():
                if other[:most] == symbol[:most] and (shared := _shared(other, symbol)) > most:
                    best, most = name, shared
    return best


def _shared(one: str, other: str) -> int:
    """How many letters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (first, second) in pairs if first != second), min(len(one), len(other)))


def _asked(objects: Mapping[str, Elf], symbol: str, library: str) -> Asked:
    found = [path for path, each in sorted(objects.items()) if library in {each.soname, path.rpartition("/")[2]}]
    lacking = [path for path in found if not _defines(objects[path].offers, symbol)]
    return Asked(symbol=symbol, library=library, found=tuple(found), lacking=tuple(lacking))


def _defines(offers: Iterable[Symbols], symbol: str) -> bool:
    return any(symbol in group.each() for group in offers if symbol in group.names)
