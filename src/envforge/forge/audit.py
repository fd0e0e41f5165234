"""`audit`: recorded against actual, down to the bytes; nothing of the environment is run, nothing is written to it."""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envforge.model.drift import Audit, Audits, Checked, Drift, Seen
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.snapshot import Snapshot
from envforge.model.state import Observation, State
from envforge.probe import drift as drifts
from envforge.probe import hashing, interpreter, processes, stamps, surroundings
from envforge.probe import prefix as prefixes
from envforge.rules import drift as drift_rules
from envforge.rules import events as event_rules
from envforge.rules import surroundings as surrounding_rules
from envforge.rules.context import Moment
from envforge.rules.judge import lowered
from envforge.store import seen as kept_seen
from envforge.store import snapshots
from envforge.store.layout import Home
from envforge.system import clock, environ

from .comparing import enriched
from .generations import beginning, linked
from .path import current, require
from .profiles import recorded
from .shop import Shop
from .show import moved_on
from .timeline import Timeline


def audit(shop: Shop, name: str, *, deep: bool = False, profile: Profile | None = None) -> Result[Audit]:
    """Compare the environment ``name`` with its last snapshot, and judge the guards of its profile (or ``profile``).

    Quick: only files whose size, times or inode differ from when they were last known to be right are hashed; ``deep``:
    all. Raises UsageError ``no-such-environment``, EnvforgeError ``no-generation`` or ``corrupt-record``.
    """
    home = shop.home
    generation, _ = current(home, require(home, name))
    started = clock.monotonic()
    about = _About(home=home, name=name, generation=generation)
    snapshot = about.snapshot()
    built_from = recorded(home, name, generation)
    judged = profile or built_from
    begun = beginning(home, name, generation)
    moved, why = moved_on(name, built_from, begun.get("source"))
    shop.tell(Working(what=f"looking at {name}"))
    found = about.look(snapshot, deep=deep)
    facts = surroundings.look(about.prefix, about.known() if found.recorded is None else found.recorded)
    shop.tell(Working(what=None))
    findings = [
        *(drift_rules.findings(found.drift) if found.drift is not None else ()),
        *surrounding_rules.findings(facts),
    ]
    known = {finding.key for finding in findings}
    findings += [
        each for each in about.guards(judged, begun.get("substitutes", {}), snapshot, found) if each.key not in known
    ]
    rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    told = sorted((lowered(each, judged.ignore) for each in findings), key=lambda each: (rank[each.severity], each.key))
    return Result(
        command="audit",
        data=Audit(
            environment=name,
            profile=judged.name,
            generation=generation,
            deep=deep,
            checked=Checked(
                distributions=len(found.state),
                files=len(found.now),
                bytes=found.hashed,
                seconds=clock.monotonic() - started,
            ),
            events=event_rules.events(found.drift, _users(found.drift)) if found.drift is not None else (),
            outdated=(why,) if moved and why else (),
            processes=tuple(f"{each.pid} {' '.join(each.argv)}" for each in processes.using(about.prefix)),
        ),
        findings=tuple(told),
    )


def audit_all(shop: Shop, *, deep: bool = False) -> Result[Audits]:
    """Every environment that has a generation in use; findings name the environment in their message.

    One that cannot be audited, since its folder or records are gone or damaged, is a finding, and the others go on.
    Raises UsageError ``newer-record``.
    """
    home = shop.home
    audits: list[Audit] = []
    findings: list[Finding] = []
    for name in home.environments():
        if linked(home, name) is None:
            continue
        try:
            result = audit(shop, name, deep=deep)
        except UsageError:
            raise
        except EnvforgeError as error:
            findings.append(_not_audited(name, error))
            continue
        audits.append(result.data)
        findings += [replace(each, message=f"{name}: {each.message}") for each in result.findings]
    return Result(command="audit", data=Audits(environments=tuple(audits)), findings=tuple(findings))


def _not_audited(name: str, error: EnvforgeError) -> Finding:
    damaged = error.code == "corrupt-record"
    return Finding(
        id="file-modified" if damaged else "file-missing",
        severity=Severity.ERROR,
        subject=name,
        message=f"{name}: it cannot be audited: {error.message}" + (f" ({error.cause})" if error.cause else ""),
        evidence={"code": error.code},
        remedy=error.hint,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """``drift`` is None where every file looks as when it was last known to be right. ``hashed``: bytes.

    ``recorded``: paths of the snapshot, None where its table of files was not needed.
    """

    state: State
    now: Seen
    hashed: int = 0
    drift: Drift | None = None
    observation: Observation | None = None
    recorded: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """One generation and its records."""

    home: Home
    name: str
    generation: int

    @property
    def prefix(self) -> Path:
        return self.home.prefix(self.name, self.generation)

    def snapshot(self) -> Snapshot:
        snapshot = snapshots.latest(self.home, self.name, self.generation)
        if snapshot is None:
            raise EnvforgeError(
                "record-not-found",
                f"there is no snapshot of `{self.name}/{self.generation}` to compare with",
                hint="build it anew with `envforge create --replace`",
            )
        return snapshot

    def known(self) -> frozenset[str]:
        """Paths of the last snapshot."""
        snapshot = snapshots.latest(self.home, self.name, self.generation, files=True)
        return frozenset(row.path for row in snapshot.files) if snapshot is not None else frozenset()

    def look(self, snapshot: Snapshot, *, deep: bool) -> _Found:
        """What is there; the slow ways are gone only as far as something looks other than it did."""
        now = stamps.stamps(self.prefix)
        seen = kept_seen.read(self.home, self.name, self.generation)
        if seen is not None and seen.step == snapshot.step and not deep:
            changed, gone, new = stamps.differing(seen.seen, now)
            if not (changed or gone or new or seen.told):
                return _Found(state=snapshot.state, now=now)
            suspects: Iterable[str] = changed
        else:
            suspects = now
        whole = snapshots.read(self.home, self.name, self.generation, snapshot.step, files=True)
        if not deep and seen is None:
            # The first look after the build: what still has the size, mtime and inode of the snapshot is believed,
            # if nothing was done to it since; a ctime nobody can put back.
            rows = {row.path: (row.size, row.mtime, row.inode) for row in whole.files}
            made = _nanoseconds(snapshot.made)
            suspects = [
                path
                for path, (size, mtime, ctime, inode) in now.items()
                if ctime >= made or rows.get(path) != (size, mtime, inode)
            ]
        paths = [path for path in suspects if path in now]
        digests = hashing.digests(self.prefix, paths)
        observation = prefixes.look(self.prefix)
        drift = drifts.compare(self.prefix, whole, observation, digests)
        # A new file that nobody owns, a log say, is no drift: what of such runs by itself the surroundings tell.
        telling = any(each.kind != "extra" or each.owners for each in drift.files)
        clean = not (telling or drift.missing or drift.extra or drift.changed)
        if clean:
            told = bool(observation.debris or observation.clashes)
            kept_seen.write(self.home, self.name, self.generation, now, deep=deep, step=snapshot.step, told=told)
        return _Found(
            state=enriched(observation.state, snapshot.state),
            now=now,
            hashed=sum(now[path][0] for path in paths),
            drift=None if clean else drift,
            observation=observation,
            recorded=frozenset(row.path for row in whole.files),
        )

    def guards(
        self, profile: Profile, substitutes: Mapping[str, str], snapshot: Snapshot, found: _Found
    ) -> tuple[Finding, ...]:
        """The guards of ``profile`` as they stand now, given what every step once left.

        ``substitutes``: what stood in for what when it was built.
        """
        steps = {step.name: step for step in profile.steps}
        states = [
            snapshots.read(self.home, self.name, self.generation, number)
            for number in snapshots.numbers(self.home, self.name, self.generation)
            if number < snapshot.step
        ]
        markers = interpreter.assumed(snapshot.python, environ.architecture(), environ.glibc() or "2.28").markers
        first = states[0].state if states else {}
        timeline = Timeline(profile, markers, substitutes, base=first)
        for each in states[1:]:
            timeline.add(Moment(step=steps.get(each.step_name or ""), state=each.state), {})
        last = Moment(step=steps.get(snapshot.step_name or ""), state=found.state, observation=found.observation)
        timeline.add(last, {})
        return timeline.findings


def _nanoseconds(made: str) -> int:
    """An ISO 8601 time as file times count; 0, before every file, for what is none."""
    try:
        return int(datetime.fromisoformat(made).timestamp()) * 10**9
    except ValueError:
        return 0


def _users(drift: Drift) -> dict[int, str]:
    """Names of the users that own what changed."""
    names = {}
    for uid in {each.uid for each in drift.files if each.uid is not None} | {uid for _, uid, _ in drift.infos.values()}:
        try:
            names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            names[uid] = str(uid)
    return names
