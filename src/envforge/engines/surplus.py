"""What the cache holds that nothing refers to any more: by distribution, and of those that are held by file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envforge.model.state import is_package, package_key

from . import conda_cache
from .uv_cache import Unpacked, UvCache

_NAME = re.compile(rb"^Name:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_HEAD = 16_384
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is still referred to: canonical names of distributions, keys of conda packages, and the sha256 of wheels,
    sdists and packages.

    ``unknown``: (canonical name, version) of what was installed from a file that nobody knows.
    """

    names: frozenset[str]
    hashes: frozenset[str]
    unknown: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """What can go.

    ``names``: of which uv is told to clean all; ``wheels``: single ones of names that are held; ``uv``: the places of
    both, by name or ``name==version``; ``debris``: what goes from uv's cache besides. ``own``: likewise what goes from
    envforge's own stores, under an empty name what is nobody's. ``hashes``: of the files whose metadata or whose own
    bytes go, without which no lock is restored.
    """

    names: tuple[str, ...]
    wheels: tuple[Unpacked, ...]
    uv: Mapping[str, tuple[Path, ...]]
    debris: tuple[Path, ...]
    own: Mapping[str, tuple[Path, ...]]
    hashes: frozenset[str]


def surplus(cache: Path, held: Held) -> Surplus:
    """Look for it; nothing is changed.

    Pages of indexes stay: to plan what is held, the resolver also asks for names that then are not installed. Of names
    that are held the metadata of every version stays: without it the same plan takes much longer.
    """
    uv = UvCache(cache / "uv")
    going = tuple(name for name in uv.names() if name not in held.names)
    unpacked = {each: each.name in held.names and _superseded(each, held) for each in uv.unpacked()}
    wheels = tuple(each for each, superseded in unpacked.items() if superseded)
    whose = {sha256: f"{each.name}=={each.version}" for each in wheels for sha256 in each.hashes}
    staying = held.hashes.union(*(each.hashes for each, superseded in unpacked.items() if not superseded))
    exact = uv.familiar
    own: dict[str, list[Path]] = defaultdict(list)
    hashes = set(whose) - staying
    names: dict[str, str] = {}  # sha256 of a wheel or sdist -> canonical name
    for folder in _entries(cache / "built" / "wheels"):
        name, source = _built(folder)
        names |= {folder.name: name, source: name}
        if folder.name not in held.hashes:
            hashes.add(folder.name)
            own[name].append(folder)
    for key in (cache / "built" / "sources").glob("*/*"):
        if _text(key) not in held.hashes:
            own[names.get(_text(key), "")].append(key)
    names[""] = ""
    for name, file in _fetched(cache / "index", held, names):
        hashes.add(file.name)
        own[name].append(file)
    for file in _entries(cache / "known"):
        # What tells a damaged copy from a good one stays for as long as uv may have a copy.
        name = names.get(file.name, "")
        if name not in {*held.names, ""}:
            own[name].append(file)
        elif name and exact and file.name not in staying:
            own[whose.get(file.name, "")].append(file)
    _add_code(cache / "imports", held.names, own)
    own[""] += _entries(cache / "scratch")
    for what, sha256, paths in _conda(cache, held):
        own[what] += paths
        hashes.add(sha256)
    return Surplus(
        names=going,
        wheels=wheels,
        uv=uv.places(going, wheels),
        debris=uv.dangling(),
        own={name: tuple(paths) for name, paths in sorted(own.items()) if paths},
        hashes=frozenset(each for each in hashes if _DIGEST.fullmatch(each)),
    )


def _fetched(index: Path, held: Held, names: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """What goes of what was fetched from indexes, under which name; ``names`` learns what metadata tells."""
    for file in _entries(index / "metadata"):
        name = _named(file)
        names.setdefault(file.name, name)
        if name not in held.names:
            yield name, file
    for file in _entries(index / "files"):
        if file.name not in held.hashes:
            yield names.get(file.name, ""), file


def _conda(cache: Path, held: Held) -> Iterator[tuple[str, str, tuple[Path, ...]]]:
    """What goes of the conda packages: under which name, the sha256 of the package, and its places.

    What channels say that they have stays as long as any package is held: to plan what is held, all of it is asked.
    """
    folder = cache / "conda"
    for each in conda_cache.unpacked(folder / "pkgs"):
        of_that_name = package_key(each.name) in held.names
        if each.sha256 in held.hashes or (each.sha256 is None and of_that_name):
            continue
        sha256 = each.sha256 or ""
        known = [cache / "known" / sha256] if sha256 else []
        yield f"{each.name}=={each.version}" if of_that_name else each.name, sha256, _there((*each.places, *known))
    yield "", "", _there(conda_cache.debris(folder / "pkgs"))
    if not any(map(is_package, held.names)):
        yield "lists of channels", "", tuple(_entries(folder / "repodata"))


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.exists())


def _add_code(folder: Path, held: Collection[str], own: dict[str, list[Path]]) -> None:
    """What is kept of the imports in the code of distributions; of ``held`` names that of every version stays."""
    for file in _entries(folder):
        name = file.name.rpartition("-")[0]
        if name not in held:
            own[name].append(file)


def _superseded(wheel: Unpacked, held: Held) -> bool:
    """Whether nothing that stays was installed from it; False where that is not sure."""
    if wheel.version is None or not wheel.hashes or wheel.hashes & held.hashes:
        return False
    return not any(name == wheel.name and _is(version, wheel.version) for name, version in held.unknown)


def _is(text: str, version: Version) -> bool:
    """Whether they are, or may be, the same version."""
    try:
        return Version(text) == version
    except InvalidVersion:
        return True


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _built(folder: Path) -> tuple[str, str]:
    """The distribution that was built, and the sha256 of its sdist; empty where that is not known."""
    try:
        about = json.loads((folder / "about.json").read_bytes())
        return canonicalize_name(str(about["name"])), str(about["origin"]["sha256"] or "")
    except (OSError, ValueError, TypeError, KeyError):
        return "", ""


def _named(file: Path) -> str:
    """The distribution that a METADATA is of; empty where it is none."""
    try:
        with file.open("rb") as stream:
            found = _NAME.search(stream.read(_HEAD))
    except OSError:
        return ""
    return canonicalize_name(found[1].decode("utf-8", "replace")) if found else ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
