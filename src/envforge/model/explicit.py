"""The list of packages that conda, mamba and rattler install as it is, without solving anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import repodata
from .state import Distribution, State, package_key, packages


def render(state: State, head: str = "") -> str:
    """An ``@EXPLICIT`` list of the packages of ``state``; ``head``: lines of comment that come first.

    The hash stands as ``#sha256:...``, which conda reads from 24.9 on, and mamba and rattler as well. A channel that
    states none is told by its MD5.
    """
    place = platform(state)
    lines = [f"# {line}".rstrip() for line in head.splitlines()]
    lines += [f"# platform: {place}"] if place is not None else []
    return "".join(f"{each}\n" for each in lines) + listed(in_order(state))


def listed(items: Iterable[Distribution]) -> str:
    """The list alone, of ``items`` as they come."""
    return "".join(f"{each}\n" for each in ["@EXPLICIT", *map(_line, items)])


def in_order(state: State) -> tuple[Distribution, ...]:
    """The packages of ``state``, each after those that it depends on."""
    return tuple(_ordered(packages(state)))


def platform(state: State) -> str | None:
    """The subdir that the packages are for, ``linux-64``; None where all are for any."""
    found = {repodata.subdir(item) for item in packages(state).values()} - {repodata.NOARCH}
    return min(found, default=None)


def _ordered(there: State) -> Iterator[Distribution]:
    begun: set[str] = set()

    def visit(name: str) -> Iterator[Distribution]:
        if name not in there or name in begun:
            return
        begun.add(name)
        for needed in sorted(repodata.spec_name(spec) for spec in repodata.depends(there[name])):
            # pip needs a Python, and some Pythons name pip all the same: the Python comes first.
            if (name, needed) != (package_key("python"), "pip"):
                yield from visit(package_key(needed))
        yield there[name]

    for name in sorted(there):
        yield from visit(name)


def _line(item: Distribution) -> str:
    md5 = repodata.said(item).get("md5")
    digest = f"sha256:{item.sha256}" if item.sha256 else md5
    return f"{item.url}#{digest}" if digest else str(item.url)
