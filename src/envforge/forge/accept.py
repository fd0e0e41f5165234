"""`accept`: what is there today becomes a snapshot, if the guards hold and nothing is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from envforge.engines.built import BuiltStore
from envforge.model import wire
from envforge.model.drift import Accepted, Drift, NotReproducible
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.snapshot import Snapshot
from envforge.model.state import FileRow, State, distributions, shown
from envforge.model.views import Audited
from envforge.probe import launch, surroundings
from envforge.probe.drift import is_bytecode
from envforge.rules.against_record import Disagreement
from envforge.rules.against_record import findings as disagreements
from envforge.rules.diff import changes as differences
from envforge.rules.judge import lowered
from envforge.rules.wording import WHOLE_DISTRIBUTIONS
from envforge.store import audited, pylock, repairs, snapshots
from envforge.store import seen as kept_seen
from envforge.store.journal import Journal
from envforge.store.locking import hold
from envforge.system import clock

from . import launching
from .comparing import enriched
from .damage import VITAL
from .generations import beginning
from .generations import made as made_last
from .known import is_note
from .looking import About, Found
from .path import current, require
from .profiles import recorded
from .shop import Shop
from .taking import hashed, remember, snapshot, told, written
from .witness import Testimony, hear, veiled

_UNDO = {
    "file-missing": "`envforge repair {name}` brings it back",
    "file-modified": "if the change is not meant, `envforge rebuild {name}` builds a generation without it",
}


def accept(shop: Shop, name: str) -> Result[Accepted]:
    """Take what the generation in use holds now as its snapshot after the last one.

    Nothing is written where a finding of severity error stands (a guard, debris, code of nobody, a distribution that
    lacks files, something that cannot be read), or where nothing has drifted. A file that is not what its RECORD says
    is taken, and told as a warning.

    Raises UsageError ``no-such-environment``, EnvforgeError ``no-generation``, ``locked``,
    ``repair-unfinished`` or ``corrupt-record``.
    """
    home = shop.home
    started = clock.monotonic()
    with hold(home, require(home, name), f"accept {name}"):
        generation, _ = current(home, name)
        about = About(home=home, name=name, generation=generation)
        if repairs.unfinished(home, name, generation):
            raise EnvforgeError(
                "repair-unfinished",
                f"a repair of `{name}` was interrupted, so what is there is half of two states",
                hint=f"`envforge repair {name}` finishes it",
            )
        stamp = launch.stamp(about.prefix)
        last = about.snapshot()
        profile = recorded(home, name, generation)
        shop.tell(Working(what=f"looking at {name}"))
        found = about.look(last, deep=False)
        facts = about.surroundings(found)
        shop.tell(Working(what=None))
        substitutes = beginning(home, name, generation).get("substitutes", {})
        # Drift itself is what is accepted: what is asked is whether anything else stands against it.
        standing = about.findings(profile, substitutes, last, replace(found, drift=None), facts)
        if found.drift is None or found.whole is None:
            data = Accepted(environment=name, generation=generation, snapshot=None, seconds=clock.monotonic() - started)
            result = Result(command="accept", data=data, findings=standing)
            if not result.exit:
                launching.remember(home, name, generation, stamp)
            return result
        touched = found.state.keys() & {*found.drift.extra, *found.drift.changed, *_owners(found.drift)}
        testimony = hear(about.prefix, touched)
        met = _Meeting(about=about, found=found, drift=found.drift, before=found.whole, testimony=testimony)
        repair = f"`envforge repair {name}` puts it right"
        mended = (
            replace(each, remedy=repair) if each.id == "file-missing" and each.severity is Severity.ERROR else each
            for each in met.broken()
        )
        broken = tuple(lowered(each, profile.ignore) for each in mended)
        findings = tuple(sorted((*standing, *broken), key=lambda each: list(Severity).index(each.severity)))
        data = Accepted(
            environment=name,
            generation=generation,
            snapshot=None,
            changes=differences(last.state, found.state),
            files=met.files,
            seconds=clock.monotonic() - started,
        )
        result = Result(command="accept", data=data, findings=findings)
        if result.exit:
            return result
        result = _write(shop, met, profile, result)
        launching.remember(home, name, generation, stamp)
        warnings = [each.severity for each in result.findings].count(Severity.WARNING)
        audited.write(home, name, generation, Audited(at=clock.now(), deep=False, errors=0, warnings=warnings))
        return result


def _write(shop: Shop, met: _Meeting, profile: Profile, result: Result[Accepted]) -> Result[Accepted]:
    home, about = shop.home, met.about
    name, generation = about.name, about.generation
    position = made_last(home, name, generation, profile, met.before.step)
    made = snapshots.read(home, name, generation, position, files=True)
    state = _known(met.found.state, made.state)
    other = {change.name for change in differences(made.state, state) if change.after is not None}
    if home.adopted(name, generation) is not None:
        other = {*state}  # no lock ever knew a file of it
    notes = written(met.found.observation.files, other)
    rows = told(met.found.observation.files, {**met.digests(), **hashed(about.prefix, notes)})
    lost = _not_reproducible(made, state, rows, other)
    taken = snapshot(
        shop,
        name,
        generation,
        max(snapshots.numbers(home, name, generation)) + 1,
        state=state,
        files=rows,
        python=met.before.python,
        engine=met.before.engine,
        profile=profile,
    )
    remember(home, taken, met.found.observation, (*lost.files, *notes), _lock(shop, profile, taken))
    data = replace(result.data, snapshot=taken.id, not_reproducible=lost)
    Journal(home.journal(name, generation)).append(
        "accepted",
        step=taken.step,
        changes=[wire.change(change) for change in data.changes],
        files=data.files,
        seconds=round(data.seconds, 3),
    )
    kept_seen.write(
        home,
        name,
        generation,
        met.found.now,
        known=surroundings.entries(row.path for row in rows),
        observation=met.found.observation,
        step=taken.step,
    )
    return replace(result, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meeting:
    """What is there now against what was. ``before``: the last snapshot, with its files."""

    about: About
    found: Found
    drift: Drift
    before: Snapshot
    testimony: Testimony

    @property
    def files(self) -> int:
        """How many files are not as they were, without those of distributions that came, went or were replaced."""
        whole = {*self.drift.missing, *self.drift.extra, *self.drift.changed}
        return sum(
            1 for each in self.drift.files if (each.owners or each.kind != "extra") and not whole & {*each.owners}
        )

    def broken(self) -> Iterator[Finding]:
        """What nobody can want to accept, as errors; and as warnings, files that differ from their RECORD."""
        for found in disagreements(self.found.state, self._news(), modified=Severity.WARNING):
            yield replace(found, remedy=_UNDO[found.id].format(name=self.about.name))
        for each in self.drift.files:
            if each.kind == "missing" and not each.owners and VITAL.fullmatch(each.path):
                yield Finding(
                    id="file-missing",
                    severity=Severity.ERROR,
                    subject=each.path,
                    message=f"`{each.path}`, without which nothing in the environment starts, is gone",
                    evidence={"guard": WHOLE_DISTRIBUTIONS, "count": 1, "paths": [each.path]},
                    remedy=_UNDO["file-missing"].format(name=self.about.name),
                )
        hidden = {each.path for each in self.drift.files if each.kind == "unreadable"}
        hidden |= veiled(self.about.prefix, self.found.observation, self.testimony)
        if hidden:
            first, *others = sorted(hidden)
            more = f" and {len(others)} more" if others else ""
            yield Finding(
                id="file-modified",
                severity=Severity.ERROR,
                subject=first,
                aspect="unreadable",
                message=f"`{first}`{more} cannot be read by this user: nobody can say what would be accepted",
                evidence={"count": len(hidden), "paths": sorted(hidden)[:10]},
                remedy="accept it as the owner of the environment, or mend the permissions",
            )

    def _news(self) -> Disagreement:
        """Where a RECORD disagrees with what lies there, as far as that was not so before."""
        whole = {*self.drift.extra, *self.drift.changed}
        paths = {each.path for each in self.drift.files}

        def new(wrong: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
            kept = {name: tuple(path for path in of if name in whole or path in paths) for name, of in wrong.items()}
            return {name: of for name, of in kept.items() if of}

        heard = self.testimony.disagreement
        return Disagreement(missing=new(heard.missing), modified=new(heard.modified), unreadable={})

    def digests(self) -> dict[str, str]:
        """sha256 of the files of which no RECORD tells the truth: from now on the snapshot does."""
        drifted = {each.path for each in self.drift.files}
        return {
            **{row.path: row.sha256 for row in self.before.files if row.sha256 and row.path not in drifted},
            # Bytecode beside its source counts as a file, and what RECORD says of bytecode counts nothing.
            **{each.path: each.actual for each in self.drift.files if each.actual and each.path.endswith(".pyc")},
            **{row.path: row.sha256 for row in self.found.observation.files if row.sha256},
            **self.testimony.digests,
        }


def _owners(drift: Drift) -> Iterator[str]:
    return (owner for each in drift.files for owner in each.owners)


def _known(state: State, made: State) -> State:
    """What came back to what a step had made is known again by its file."""
    lost = {name: item for name, item in state.items() if item.sha256 is None}
    return {**state, **enriched(lost, made)}


def _lock(shop: Shop, profile: Profile, taken: Snapshot) -> str:
    """As far as it goes: what came by another way than a plan stands in it by name and version only."""
    built = BuiltStore(shop.settings.cache / "built", "")
    return pylock.render(
        distributions(taken.state),
        python=taken.python,
        indexes={index.name: index.url for index in profile.indexes},
        built={
            item.sha256: str(built.path(item.sha256, item.file))
            for item in taken.state.values()
            if item.origin is not None and item.sha256 is not None
        },
    )


def _not_reproducible(made: Snapshot, state: State, rows: Iterable[FileRow], other: set[str]) -> NotReproducible:
    """``other``: canonical names of the distributions that a build does not bring as they are."""
    files: list[str] = []
    unowned: list[str] = []
    before = {row.path: row for row in made.files}
    for row in rows:
        was = before.get(row.path)
        if is_bytecode(row.path) or is_note(row.path) or other & {*row.owners}:
            continue
        if was is None:
            (files if row.owners else unowned).append(row.path)
        elif (row.link, row.sha256) != (was.link, was.sha256):
            files.append(row.path)
    return NotReproducible(
        distributions=tuple(f"{shown(name)} {state[name].version}" for name in sorted(other)),
        removed=tuple(f"{shown(name)} {made.state[name].version}" for name in sorted(made.state.keys() - state.keys())),
        files=tuple(files),
        unowned=tuple(unowned),
    )
