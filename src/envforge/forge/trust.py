"""Whether the files that a step brought are what their wheels hold, or damaged copies out of the cache."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution, FileRow, Observation, State
from envforge.probe import hashing
from envforge.probe import prefix as prefixes
from envforge.store import contents
from envforge.store.layout import Home

from .known import Known, inner


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a generation that is restored held at its end. ``rows``: path -> row, where the snapshot knows its bytes."""

    home: Home
    name: str
    generation: int
    state: State = field(default_factory=dict)
    rows: Mapping[str, FileRow] = field(default_factory=dict)

    @classmethod
    def of(cls, home: Home, snapshot: Snapshot) -> Recorded:
        """Of a snapshot with its files."""
        rows = {row.path: row for row in snapshot.files if row.sha256 is not None and row.link is None}
        return cls(
            home=home, name=snapshot.environment, generation=snapshot.generation, state=snapshot.state, rows=rows
        )

    def has(self, item: Distribution) -> bool:
        """Whether it held this very wheel."""
        there = self.state.get(item.name)
        return there is not None and there.sha256 == item.sha256

    def content(self, sha256: str) -> bytes | None:
        """Kept bytes; None where they are not, or damaged."""
        try:
            return contents.read(self.home, self.name, self.generation, sha256)
        except EnvforgeError:
            return None


class Trust:
    """For one prefix. With ``recorded``, which is restored, no look at a file is believed: every one is hashed.

    ``lies``: of this step, canonical name -> paths of which a new wheel's RECORD tells no truth.
    """

    def __init__(self, known: Known, prefix: Path, recorded: Recorded | None = None) -> None:
        self._known = known
        self._prefix = prefix
        self._recorded = recorded
        self.lies: Mapping[str, tuple[str, ...]] = {}

    def begin(self) -> None:
        """A new step."""
        self.lies = {}

    def poisoned(self, observation: Observation, expected: State, names: set[str]) -> dict[str, tuple[str, ...]]:
        """Those of ``names`` that came damaged out of the cache -> the paths.

        Files that look as when their wheel was installed before are believed, unless something is restored; others
        are hashed against RECORD. Where a wheel that was never seen before differs from its RECORD, it is the RECORD
        that lies: that is remembered.
        """
        if self._recorded is None:
            suspects: Sequence[str] = self._known.suspects(observation, expected, names)
        else:
            suspects = sorted(names & expected.keys())
        damaged = self.damaged(suspects, expected)
        fresh = {name for name in damaged if self._is_new(expected[name])}
        self.lies = {**self.lies, **{name: damaged[name] for name in fresh}}
        found = {name: paths for name, paths in damaged.items() if name not in fresh}
        for row in self._strangers(observation):
            for name in set(row.owners) & names:
                found[name] = (*found.get(name, ()), row.path)
        return found

    def _is_new(self, item: Distribution) -> bool:
        """Whether nobody has ever seen what the wheel holds."""
        seen = self._recorded is not None and self._recorded.has(item)
        return not seen and self._known.new(item.sha256 or "")

    def damaged(self, names: Collection[str], expected: State) -> dict[str, tuple[str, ...]]:
        """Files that are there and are not what their RECORD says, but for those of which RECORD is known to lie."""
        found = {}
        for name, paths in prefixes.damaged(self._prefix, names).items():
            there = [path for path in paths if (self._prefix / path).exists()]
            wrong = tuple(self._unknown(expected[name], there))
            if wrong:
                found[name] = wrong
            elif there:
                self.lies = {**self.lies, name: tuple(there)}
        return found

    def _unknown(self, item: Distribution, paths: Sequence[str]) -> list[str]:
        """Those of the paths whose bytes nobody ever saw in this wheel."""
        witness = self._recorded.rows if self._recorded is not None and self._recorded.has(item) else {}
        now = hashing.digests(self._prefix, [path for path in paths if path in witness])
        lies = self._known.lies(item.sha256 or "")
        return [
            path
            for path in paths
            if (now[path] != witness[path].sha256 if path in witness else inner(path) not in lies)
        ]

    def _strangers(self, observation: Observation) -> list[FileRow]:
        """Files of several owners, the same as were recorded, that hold other bytes than those did."""
        rows = self._recorded.rows if self._recorded is not None else {}
        return [
            row
            for row in observation.files
            if len(row.owners) > 1
            and row.path in rows
            and (row.owners, row.link) == (rows[row.path].owners, None)
            and row.sha256 != rows[row.path].sha256
        ]

    def put_back(self, observation: Observation) -> tuple[str, ...]:
        """Where several wheels bring one path, let the one win that won then; the paths that were exchanged.

        Raises OSError.
        """
        done = []
        for row in self._strangers(observation):
            assert self._recorded is not None  # noqa: S101 - else there is none
            content = self._recorded.content(self._recorded.rows[row.path].sha256 or "")
            if content is not None:
                _exchange(self._prefix / row.path, content)
                done.append(row.path)
        return tuple(done)

    def witnessed(self, observation: Observation, expected: State) -> Observation:
        """The same, with a hash of its own for every file of which RECORD does not tell the truth."""
        paths = {path for found in self.lies.values() for path in found}
        liars = {name: lies for name, item in expected.items() if (lies := self._known.lies(item.sha256 or ""))}
        if liars:
            paths |= {
                row.path
                for row in observation.files
                if len(row.owners) == 1 and inner(row.path) in liars.get(row.owners[0], ())
            }
        if not paths:
            return observation
        digests = hashing.digests(self._prefix, paths)
        rows = (replace(row, sha256=digests.get(row.path) or row.sha256) for row in observation.files)
        return replace(observation, files=tuple(rows))


def _exchange(path: Path, content: bytes) -> None:
    """Give ``path`` other bytes, and the cache that shares its file none of them."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
        stream.write(content)
        os.fchmod(stream.fileno(), mode)
    Path(temporary).replace(path)
