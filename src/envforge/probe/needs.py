"""What compiled files need of a host, as far as the tags of wheels and the records of conda packages say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envforge.model.bundle import Needs

_NAMED = re.compile(r"manylinux_([0-9]+)_([0-9]+)_(\w+)", re.ASCII)
_OLDER = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_GLIBC = re.compile(r"__glibc\s*>=\s*([0-9]+\.[0-9]+)", re.ASCII)
_ANY = "any"


def needs(wheels: Iterable[Iterable[str]], *, glibc: str | None) -> Needs:
    """What all of ``wheels`` need, each given by its platforms (``manylinux_2_17_x86_64``).

    ``glibc`` is this host's: what was built for no platform but ``linux`` was built against it.
    """
    here = tuple(int(part) for part in (glibc or "").split(".") if part.isdecimal())
    architectures: set[str] = set()
    floors = []
    for platforms in wheels:
        offers = [_offer(each, here) for each in platforms if each != _ANY]
        if offers and _ANY not in platforms:
            architectures.update(architecture for _, architecture in offers)
            floors.append(min(floor for floor, _ in offers))
    floor = max(floors, default=())
    return Needs(
        architecture=min(architectures, default=None),
        glibc=".".join(map(str, floor)) if floor else None,
    )


def needs_of_packages(packages: Iterable[tuple[str | None, Iterable[str]]]) -> Needs:
    """What conda packages need, each given by its architecture (None: any) and the match specs that it requires."""
    architectures: set[str] = set()
    floors = []
    for architecture, specs in packages:
        architectures |= {architecture} if architecture is not None else set()
        floors += [found[1] for spec in specs if (found := _GLIBC.match(spec)) is not None]
    return Needs(
        architecture=min(architectures, default=None),
        glibc=strictest(*(Needs(glibc=each) for each in floors)),
    )


def both(one: Needs, other: Needs) -> Needs:
    """What a host must have for both."""
    return Needs(architecture=one.architecture or other.architecture, glibc=strictest(one, other))


def strictest(*several: Needs) -> str | None:
    """The newest glibc that one of them asks for."""
    floors = [tuple(int(part) for part in each.glibc.split(".")) for each in several if each.glibc]
    return ".".join(map(str, max(floors))) if floors else None


def _offer(platform: str, here: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """The glibc that is enough for a platform, and its architecture."""
    named = _NAMED.fullmatch(platform)
    if named is not None:
        return (int(named[1]), int(named[2])), named[3]
    stem, _, architecture = platform.partition("_")
    return _OLDER.get(stem, here), architecture
