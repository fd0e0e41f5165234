"""Whether two PEP 440 specifiers leave any version to choose."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Whether some version, existing or not, satisfies both; True where one of them cannot be read.

    Every clause is true on a few stretches of the order of versions, which begin and end at the clause's own version,
    at its pre- and post-releases, or at the next release of some length. One candidate of each stretch is tried.
    """
    try:
        both = SpecifierSet(one) & SpecifierSet(other)
    except InvalidSpecifier:
        return True
    return any(both.contains(candidate, prereleases=True) for candidate in _candidates(list(both)))


def _candidates(clauses: list[Specifier]) -> Iterator[str]:
    bounds = []
    for clause in clauses:
        text = clause.version.removesuffix(".*")
        yield text
        try:
            bounds.append(Version(text))
        except InvalidVersion:  # `===` takes any text
            continue
    depth = max((len(bound.release) for bound in bounds), default=0)
    yield "0.dev0"
    yield "1"
    for bound in bounds:
        yield from _around(bound, depth)


def _around(bound: Version, depth: int) -> Iterator[str]:
    """Versions at, just before and just after ``bound``; no other bound has more than ``depth`` parts."""
    epoch = f"{bound.epoch}!"
    base = epoch + ".".join(map(str, bound.release))
    yield bound.public
    yield f"{epoch}0.dev0"
    yield base
    yield f"{base}.dev0"
    yield f"{base}a0.dev0"
    yield f"{base}rc999999"
    yield f"{base}.post0.dev0"
    yield f"{base}.post0"
    stem = base
    if bound.pre is not None:
        letter, number = bound.pre
        stem = f"{base}{letter}{number}"
        yield from (stem, f"{stem}.dev0", f"{base}{letter}{number + 1}.dev0", f"{base}{letter}{number + 1}")
        yield from (f"{stem}.post0.dev0", f"{stem}.post0")
    if bound.post is not None:
        post = f"{stem}.post{bound.post}"
        yield from (post, f"{post}.dev0", f"{stem}.post{bound.post + 1}.dev0", f"{stem}.post{bound.post + 1}")
        stem = post
    if bound.dev is not None:
        yield f"{stem}.dev{bound.dev + 1}"
    above = ".".join(map(str, (*bound.release, *[0] * (depth - len(bound.release)), 0, 1)))
    yield f"{epoch}{above}"
    for length in range(1, len(bound.release) + 1):
        head = (*bound.release[: length - 1], bound.release[length - 1] + 1)
        following = epoch + ".".join(map(str, head))
        yield from (f"{following}.dev0", following)
