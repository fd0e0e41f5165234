"""What compiled files need of a host, as far as the platforms in a wheel's tags say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envforge.model.bundle import Needs

_NAMED = re.compile(r"manylinux_([0-9]+)_([0-9]+)_(\w+)", re.ASCII)
_OLDER = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
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
