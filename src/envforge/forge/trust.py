"""Whether the files that a step brought are what their wheels hold, or damaged copies out of the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envforge.model.state import Observation, State
from envforge.probe import hashing
from envforge.probe import prefix as prefixes

from .known import Known, inner


class Trust:
    """For one prefix. ``lies``: of this step, canonical name -> paths of which a new wheel's RECORD tells no truth."""

    def __init__(self, known: Known, prefix: Path) -> None:
        self._known = known
        self._prefix = prefix
        self.lies: Mapping[str, tuple[str, ...]] = {}

    def begin(self) -> None:
        """A new step."""
        self.lies = {}

    def poisoned(self, observation: Observation, expected: State, names: set[str]) -> dict[str, tuple[str, ...]]:
        """Those of ``names`` that came damaged out of the cache -> the paths.

        Files that look as when their wheel was installed before are believed; others are hashed against RECORD. Where
        a wheel that was never seen before differs from its RECORD, it is the RECORD that lies: that is remembered.
        """
        damaged = self.damaged(self._known.suspects(observation, expected, names), expected)
        fresh = {name for name in damaged if self._known.new(expected[name].sha256 or "")}
        self.lies = {name: damaged[name] for name in fresh}
        return {name: paths for name, paths in damaged.items() if name not in fresh}

    def damaged(self, names: Sequence[str], expected: State) -> dict[str, tuple[str, ...]]:
        """Files that are there and are not what their RECORD says, but for those of which RECORD is known to lie."""
        found = {}
        for name, paths in prefixes.damaged(self._prefix, names).items():
            lies = self._known.lies(expected[name].sha256 or "")
            wrong = tuple(path for path in paths if inner(path) not in lies and (self._prefix / path).exists())
            if wrong:
                found[name] = wrong
        return found

    def witnessed(self, observation: Observation) -> Observation:
        """The same, with a hash of its own for every file of which RECORD does not tell the truth."""
        paths = {path for found in self.lies.values() for path in found}
        if not paths:
            return observation
        digests = hashing.digests(self._prefix, paths)
        rows = (replace(row, sha256=digests.get(row.path) or row.sha256) for row in observation.files)
        return replace(observation, files=tuple(rows))
