"""A generation in use against its records: what audit, repair and accept all begin with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envforge.model.drift import Drift, Seen, Surroundings
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.native import Native
from envforge.model.profile import Profile
from envforge.model.snapshot import Snapshot
from envforge.model.state import Observation, State
from envforge.probe import drift as drifts
from envforge.probe import hashing, interpreter, moved, stamps, surroundings
from envforge.probe import prefix as prefixes
from envforge.probe.shadows import shadows
from envforge.rules import drift as drift_rules
from envforge.rules import surroundings as surrounding_rules
from envforge.rules.context import Moment
from envforge.rules.judge import lowered
from envforge.store import native_seen, snapshots
from envforge.store import seen as kept_seen
from envforge.store.layout import Home
from envforge.system import environ

from . import native as natives
from .comparing import enriched
from .timeline import Timeline

_COMMAND = re.compile(r"(`envforge (?:repair|rebuild))`")
_LEFT = frozenset({"leftover", "record-missing"})
"""What an installer that was ended left, which no step of a build does."""
_LARGE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look found. ``drift`` is None where all is as recorded; ``hashed``: bytes; ``known``: what
    `surroundings.entries` says of the snapshot's files; ``shadows``: new files of nobody that are imported in place of
    recorded modules.

    ``observation`` has its table of files only where the whole prefix was looked at, and so has ``whole``, the
    snapshot with its files.
    """

    state: State
    now: Seen
    known: frozenset[str]
    observation: Observation
    shadows: tuple[str, ...] = ()
    hashed: int = 0
    drift: Drift | None = None
    whole: Snapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """One generation and its records. ``host``: this machine, where somebody has looked at it already."""

    home: Home
    name: str
    generation: int
    host: Machine | None = None

    @property
    def prefix(self) -> Path:
        return self.home.prefix(self.name, self.generation)

    def snapshot(self) -> Snapshot:
        """The last one. Raises EnvforgeError ``record-not-found`` or ``corrupt-record``."""
        snapshot = snapshots.latest(self.home, self.name, self.generation)
        if snapshot is None:
            raise EnvforgeError(
                "record-not-found",
                f"there is no snapshot of `{self.name}/{self.generation}` to compare with",
                hint="build it anew with `envforge create --replace`",
            )
        return snapshot

    def look(self, snapshot: Snapshot, *, deep: bool) -> Found:
        """What is there; the slow ways are gone only as far as something looks other than it did.

        What is right is remembered, so that the next look hashes only what was not, or has changed since.
        """
        now = stamps.stamps(self.prefix)
        seen = None if deep else kept_seen.read(self.home, self.name, self.generation, now)
        if seen is not None and seen.step != snapshot.step:
            seen = None
        suspects: Iterable[str] = now
        if seen is not None:
            changed, gone, new = stamps.differing(seen.seen, now)
            if seen.observation is not None and not (changed or gone or new):
                return Found(
                    state=snapshot.state,
                    now=now,
                    known=seen.known,
                    observation=replace(seen.observation, state=snapshot.state),
                )
            suspects = (*changed, *new)
        whole = snapshots.read(self.home, self.name, self.generation, snapshot.step, files=True)
        if not deep and seen is None:
            # The first look after the build: what still has the size, mtime and inode of the snapshot is believed, if
            # nothing was done to it since; a ctime nobody can put back.
            rows = {row.path: (row.size, row.mtime, row.inode) for row in whole.files}
            made = _nanoseconds(snapshot.made)
            suspects = [
                path
                for path, (size, mtime, ctime, inode) in now.items()
                if ctime >= made or rows.get(path) != (size, mtime, inode)
            ]
        paths = list(suspects)
        large = sorted((path for path in paths if now[path][0] >= _LARGE), key=lambda path: -now[path][0])
        with ThreadPoolExecutor(max_workers=1) as aside:
            # Hashing a large file lets go of the interpreter: the look goes on meanwhile. Many small ones would not.
            hashed = aside.submit(hashing.digests, self.prefix, large)
            observation = prefixes.look(self.prefix)
            digests = hashing.digests(self.prefix, set(paths).difference(large)) | hashed.result()
        drift = drifts.compare(self.prefix, whole, observation, digests)
        # A new file that nobody owns, a log say, is no drift, unless it runs in place of what was recorded.
        nobodys = (each.path for each in drift.files if each.kind == "extra" and not each.owners)
        shadowing = shadows((row.path for row in whole.files), nobodys, namespaces=True)
        telling = {each.path for each in drift.files if each.kind != "extra"}.union(shadowing)
        clean = not (telling or drift.missing or drift.extra or drift.changed)
        if not clean:
            telling |= {row.path for row in drift_rules.unvouched(drift, whole.files)}
        known = surroundings.entries(row.path for row in whole.files)
        kept_seen.write(
            self.home,
            self.name,
            self.generation,
            {path: stamp for path, stamp in now.items() if path not in telling} if telling else now,
            known=known,
            observation=observation if clean else None,
            step=snapshot.step,
        )
        return Found(
            state=enriched(observation.state, snapshot.state),
            now=now,
            known=known,
            observation=observation,
            shadows=shadowing,
            hashed=sum(now[path][0] for path in paths),
            drift=None if clean else drift,
            whole=whole,
        )

    def native(self, profile: Profile, snapshot: Snapshot, found: Found) -> Native:
        """What its compiled files are and lack; looked at again only where one of them, or the host, is another."""
        key = natives.key(self.prefix, natives.looks_now(found.now), found.state, profile)
        kept = native_seen.read(self.home, self.name, self.generation, key=key) if found.drift is None else None
        if kept is not None:
            return kept
        whole = found.whole or snapshots.read(self.home, self.name, self.generation, snapshot.step, files=True)
        rows = found.observation.files if found.whole is not None else whole.files
        changed = {each.path for each in found.drift.files} if found.drift is not None else set()
        native = natives.recorded(
            self.home, self.prefix, whole, rows=rows, state=found.state, changed=changed, profile=profile
        )
        if found.drift is None:
            native_seen.write(self.home, self.name, self.generation, native, key=key)
        return native

    def surroundings(self, found: Found) -> Surroundings:
        """What leaks in from the host, code that nobody owns, and whether the environment lies where it was built."""
        facts = surroundings.look(self.prefix, found.known)
        inside = (path for path in found.shadows if not any(path.startswith(f"{each}/") for each in facts.unowned))
        was = moved.look(self.prefix, f"/generations/{self.name}/{self.generation}")
        return replace(
            facts,
            unowned=tuple(sorted({*facts.unowned, *inside})),
            moved_from=was.place if was is not None else None,
            stranded=was.scripts if was is not None else (),
        )

    def findings(
        self, profile: Profile, substitutes: Mapping[str, str], snapshot: Snapshot, found: Found, facts: Surroundings
    ) -> tuple[Finding, ...]:
        """All that stands against the environment, the worst first. ``substitutes``: as when it was built."""
        told = drift_rules.findings(found.drift) if found.drift is not None else ()
        gathered_ones = gathered(told, facts, self._guards(profile, substitutes, snapshot, found), profile)
        return tuple(self._named(each) for each in gathered_ones)

    def _named(self, finding: Finding) -> Finding:
        """With the environment's name in a remedy that begins with a command of envforge for it."""
        remedy = finding.remedy or ""
        found = _COMMAND.match(remedy)
        return finding if found is None else replace(finding, remedy=f"{found[1]} {self.name}`{remedy[found.end() :]}")

    def _guards(
        self, profile: Profile, substitutes: Mapping[str, str], snapshot: Snapshot, found: Found
    ) -> tuple[Finding, ...]:
        """The guards of ``profile`` as they stand now, given what every step once left."""
        steps = {step.name: step for step in profile.steps}
        states = [
            snapshots.read(self.home, self.name, self.generation, number)
            for number in snapshots.numbers(self.home, self.name, self.generation)
            if number <= snapshot.step
        ]
        first = states[0].state if states else {}
        native = self.native(profile, snapshot, found)
        cards = natives.cards(profile, self.host) if natives.has_code(native) else ()
        timeline = Timeline(profile, markers(snapshot.python), substitutes, base=first, cards=cards)
        for each in states[1:]:
            timeline.add(Moment(step=steps.get(each.step_name or ""), state=each.state), {})
        before = {each.key for each in timeline.findings}
        # What is there now is a moment of its own: what the last step brought must be what it was, too.
        timeline.add(Moment(step=None, state=found.state, observation=found.observation, native=native), {})
        return tuple(
            replace(each, remedy=drift_rules.REPAIR) if _is_repaired(each, found.drift, before) else each
            for each in timeline.findings
        )


def _is_repaired(finding: Finding, drift: Drift | None, before: set[tuple[str, str]]) -> bool:
    """Whether it goes with what drifted. ``before``: the keys of what stood against the recorded state, too."""
    if finding.id in _LEFT:
        return finding.severity is Severity.ERROR  # a warning is of rows that lead out, as the wheel has them
    if drift is None or finding.key in before:
        return False
    if finding.id == "file-clobbered":
        inside = f"/{finding.subject}/"
        return bool(drift.extra or drift.changed) or any(inside in f"/{each.path}/" for each in drift.files)
    return True


def _nanoseconds(made: str) -> int:
    """An ISO 8601 time as file times count; 0, before every file, for what is none."""
    try:
        return int(datetime.fromisoformat(made).timestamp()) * 10**9
    except ValueError:
        return 0


def gathered(
    told: Iterable[Finding], facts: Surroundings, guards: Iterable[Finding], profile: Profile
) -> tuple[Finding, ...]:
    """``told`` and what ``facts`` and ``guards`` say besides, lowered as ``profile`` wants it, the worst first."""
    found = [*told, *surrounding_rules.findings(facts)]
    known = {each.key for each in found}
    found += [_as_far_as_known(each, facts) for each in guards if each.key not in known]
    return worst_first(lowered(each, profile.ignore) for each in found)


def worst_first(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in the order in which they are told."""
    rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    return tuple(sorted(found, key=lambda each: (rank[each.severity], each.key)))


def _as_far_as_known(finding: Finding, facts: Surroundings) -> Finding:
    """Where the base Python's packages are let in, what is absent here may be there: nobody looked."""
    if facts.system_site and finding.id == "requirement-unmet" and finding.evidence.get("found") is None:
        return replace(finding, severity=Severity.WARNING)
    return finding


def markers(python: str) -> Mapping[str, str]:
    """The marker environment of a Python of this version on this host."""
    return interpreter.assumed(python, environ.architecture(), environ.glibc() or "2.28").markers
