"""A prefix as it is recorded right after a step, and an audit of it in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envforge.model.drift import Drift, Seen
from envforge.model.snapshot import Snapshot
from envforge.model.state import Observation
from envforge.probe import hashing, prefix, stamps
from envforge.probe.drift import compare


def snapshot_of(observation: Observation) -> Snapshot:
    return Snapshot(
        environment="demo",
        generation=1,
        step=1,
        step_name="install",
        made="2026-01-01T00:00:00Z",
        by="x",
        machine="here",
        driver=None,
        python="3.11.2",
        engine="uv",
        state=observation.state,
        files=observation.files,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    prefix: Path
    snapshot: Snapshot
    seen: Seen

    @classmethod
    def of(cls, place: Path) -> Recorded:
        return cls(prefix=place, snapshot=snapshot_of(prefix.look(place)), seen=stamps.stamps(place))

    def quick(self) -> Drift:
        """Hashes what size, mtime or inode of the snapshot call for."""
        observation = prefix.look(self.prefix)
        there = {row.path for row in observation.files}
        wanted = there.intersection(prefix.changed(self.prefix, self.snapshot.files))
        return compare(self.prefix, self.snapshot, observation, hashing.digests(self.prefix, wanted))

    def deep(self) -> Drift:
        """Hashes every recorded file."""
        paths = [row.path for row in self.snapshot.files]
        digests = hashing.digests(self.prefix, paths)
        return compare(self.prefix, self.snapshot, prefix.look(self.prefix), digests)


def clean(drift: Drift) -> bool:
    return not (drift.missing or drift.extra or drift.changed or drift.files)
