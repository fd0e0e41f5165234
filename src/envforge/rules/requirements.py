"""Which requirement of which distribution is active in an environment: markers judged, extras followed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envforge.model.state import Distribution, State

# `>=1.0.*` stands in old metadata; it was never valid, and installers read it as `>=1.0`.
_STARRED = re.compile(r"(>=|<=|>|<|~=)(\s*[0-9][0-9.]*)\.\*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One requirement, parsed. ``name`` and ``extras`` are canonical.

    ``text`` is it as written, without marker, spaces and brackets; ``bounds`` its specifier, empty = any version.
    """

    name: str
    text: str
    bounds: str
    extras: frozenset[str]
    marker: Marker | None
    marker_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An active requirement of ``owner`` ``version``.

    ``extra``: the extra of ``owner`` that made it active, None where it always is.
    """

    owner: str
    version: str
    wanted: Wanted
    extra: str | None = None


@lru_cache(maxsize=65536)
def parse(text: str) -> Wanted | None:
    """The requirement in ``text``; None where it cannot be read (old metadata, paths), which then says nothing."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        mended = _STARRED.sub(r"\1\2", text)
        if mended == text:
            return None
        return parse(mended)
    head = text.partition(";")[0].strip()
    return Wanted(
        name=canonicalize_name(requirement.name),
        text=head if requirement.url else re.sub(r"[\s()]", "", head),
        bounds=str(requirement.specifier),
        extras=frozenset(canonicalize_name(extra) for extra in requirement.extras),
        marker=requirement.marker,
        marker_text=str(requirement.marker or ""),
    )


@lru_cache(maxsize=65536)
def accepts(bounds: str, version: str) -> bool:
    """Whether ``version`` lies within the specifier ``bounds``; what is installed may be a pre-release.

    A version that is not PEP 440 lies within the empty specifier and within ``===`` of itself only.
    """
    try:
        return _specifier(bounds).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return bounds in {"", f"==={version}"}
    except InvalidSpecifier:
        return True


@lru_cache(maxsize=4096)
def _specifier(bounds: str) -> SpecifierSet:
    return SpecifierSet(bounds)


class _Judge:
    """Evaluates markers under one marker environment, each once."""

    def __init__(self, markers: Mapping[str, str]) -> None:
        self._markers = dict(markers)
        self._known: dict[tuple[str, str], bool] = {}

    def holds(self, wanted: Wanted, extra: str = "") -> bool:
        if wanted.marker is None:
            return True
        key = (wanted.marker_text, extra)
        known = self._known.get(key)
        if known is None:
            try:
                known = wanted.marker.evaluate({**self._markers, "extra": extra})
            except (UndefinedComparison, UndefinedEnvironmentName):
                known = False
            self._known[key] = known
        return known

    def activating(self, wanted: Wanted, extras: Collection[str]) -> str | None:
        """The first of ``extras`` that makes it active."""
        if not extras or "extra" not in wanted.marker_text:
            return None
        return next((extra for extra in sorted(extras) if self.holds(wanted, extra)), None)


@lru_cache(maxsize=8)
def _judge(markers: frozenset[tuple[str, str]]) -> _Judge:
    return _Judge(dict(markers))


def applies(wanted: Wanted, markers: Mapping[str, str]) -> bool:
    """Whether the marker of a requirement that no distribution owns (a step's, a guard's) is true."""
    return _judge(frozenset(markers.items())).holds(wanted)


def edges(state: State, requested: Iterable[str], markers: Mapping[str, str]) -> tuple[Edge, ...]:
    """Every active requirement of every distribution in ``state``, by owner, in the order of its metadata.

    An extra is active where a requirement in ``requested`` or an active requirement of another distribution names it.
    """
    judge = _judge(frozenset(markers.items()))
    extras: dict[str, set[str]] = {}
    pending = deque(sorted(state))

    def activate(wanted: Wanted) -> None:
        if wanted.name in state and not wanted.extras <= extras.setdefault(wanted.name, set()):
            extras[wanted.name] |= wanted.extras
            pending.append(wanted.name)

    for text in requested:
        wanted = parse(text)
        if wanted is not None and wanted.extras and judge.holds(wanted):
            activate(wanted)
    found: dict[str, list[Edge]] = {}
    while pending:
        name = pending.popleft()
        found[name] = _owned(state[name], extras.get(name, ()), judge)
        for edge in found[name]:
            if edge.wanted.extras:
                activate(edge.wanted)
    return tuple(edge for name in sorted(found) for edge in found[name])


def _owned(distribution: Distribution, extras: Collection[str], judge: _Judge) -> list[Edge]:
    owned = []
    for line in distribution.requires:
        wanted = parse(line)
        if wanted is None:
            continue
        extra = None
        if not judge.holds(wanted):
            extra = judge.activating(wanted, extras)
            if extra is None:
                continue
        owned.append(Edge(owner=distribution.name, version=distribution.version, wanted=wanted, extra=extra))
    return owned
