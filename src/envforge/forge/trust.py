"""Whether the files that a step brought are what their wheels hold, or damaged copies out of the cache."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution, FileRow, Observation, State, is_package
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

    def content(self, path: str, prefix: Path) -> bytes | None:
        """What lay at ``path``, as it is in ``prefix``: scripts name theirs. None where it is not kept, or damaged."""
        try:
            kept = contents.read(self.home, self.name, self.generation, self.rows[path].sha256 or "")
        except EnvforgeError:
            return None
        own = self.home.prefix(self.name, self.generation)
        # Of what was adopted, they name the place where it lies.
        names = b"|".join(re.escape(os.fsencode(each)) for each in (own, own.resolve()))
        return re.sub(rb"(?:" + names + rb")(?![^/\s\"'])", lambda _: os.fsencode(prefix), kept)


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
        for path, owners, _ in self._strangers(observation):
            for name in set(owners) & names:
                found[name] = (*found.get(name, ()), path)
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

    def _strangers(self, observation: Observation) -> list[tuple[str, tuple[str, ...], bytes | None]]:
        """Files of several owners, the same as were recorded, that hold other bytes than those did: path, owners, and
        what is to lie there if that is kept.

        Which of conda packages wins depends on nothing but the packages.
        """
        if self._recorded is None:
            return []
        rows, found = self._recorded.rows, []
        for row in observation.files:
            known = rows.get(row.path)
            if known is None or len(row.owners) < 2 or (row.owners, row.link) != (known.owners, None):
                continue
            if row.sha256 == known.sha256 or all(map(is_package, row.owners)):
                continue
            content = self._recorded.content(row.path, self._prefix)
            if content is None or hashlib.sha256(content).hexdigest() != row.sha256:
                found.append((row.path, row.owners, content))
        return found

    def put_back(self, observation: Observation) -> tuple[str, ...]:
        """Where several wheels bring one path, let the one win that won then; the paths that were exchanged.

        Raises OSError.
        """
        done = []
        for path, _, content in self._strangers(observation):
            if content is not None:
                _exchange(self._prefix / path, content)
                done.append(path)
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
