"""`repair`: in place, only what drifted, each file proved to be the recorded one before it is moved in."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from envforge.engines.mender import Mender
from envforge.model.drift import Audit, Drift
from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.finding import Finding
from envforge.model.profile import Backend, Profile
from envforge.model.progress import Note
from envforge.model.repair import Lost, Mending, Repair, RepairAction, Restoration
from envforge.model.result import Result
from envforge.model.snapshot import Snapshot
from envforge.model.state import packages, shown
from envforge.probe import hashing
from envforge.rules import mending as mending_rules
from envforge.store import contents, repairs, scratch, snapshots, stamp
from envforge.store.atomic import FULL
from envforge.store.journal import Journal
from envforge.store.layout import Home
from envforge.store.locking import hold
from envforge.system import clock

from . import inside, quarantining, sealing
from .audit import audit
from .bench import bench
from .conda_supply import CondaSupply
from .generations import beginning
from .ground import ground
from .looking import About, Found
from .path import current, require
from .profiles import recorded
from .remove import delete, refuse_in_use
from .shop import Shop
from .supply import Place, Supplied, Supply

P = TypeVar("P", bound=Place)


def repair(shop: Shop, name: str, *, dry_run: bool = False, in_use: bool = False) -> Result[Repair]:
    """Put right in place what an audit of ``name`` finds, then audit again: the findings are what is left.

    With ``dry_run`` nothing is changed, and the findings are what is to be put right. Raises UsageError
    ``no-such-environment``; EnvforgeError ``no-generation``, ``in-use`` where a process runs from the generation and
    ``in_use`` does not say that this is known; LeftoverError where the disk does not let it be finished.
    """
    home = shop.home
    require(home, name)
    if dry_run:
        return _shown(shop, name)
    with hold(home, name, f"repair {name}"):
        home.refuse_foreign(name)
        quarantining.journals(shop, name)
        generation, _ = current(home, name)
        if repairs.unfinished(home, name, generation):
            shop.tell(Note(text=f"an interrupted repair of `{name}` is finished by this one"))
            scratch.sweep(shop.settings.cache / "scratch")
        need = _need(shop, name, generation)
        done = Repair(environment=name, generation=generation, dry_run=False, lost=need.plan.lost)
        if not need.plan.empty:
            if not in_use:
                refuse_in_use(home.prefix(name, generation), f"generation {generation} of `{name}`", f"repair {name}")
            with sealing.opened(home, name, generation):
                done = _Repairer(shop=shop, name=name, generation=generation, need=need).run()
        repairs.end(home, name, generation)
        verdict = audit(shop, name)
    return Result(command="repair", data=done, findings=_left(shop, done, verdict.findings))


def _left(shop: Shop, done: Repair, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, with another remedy where this one has shown, or shows already, that it cannot be in place."""
    name = done.environment
    lost = {each.subject for each in done.lost}
    fresh = " --fresh" if shop.home.adopted(name, done.generation) is not None else ""
    anew = f"`envforge rebuild {name}{fresh}` builds it anew beside the one in use"
    if shop.settings.offline and done.lost:
        anew = f"repair it again without `--offline`; else {anew}"
    return tuple(
        replace(each, remedy=anew)
        if each.remedy == f"`envforge repair {name}` puts it right" and (not done.dry_run or each.subject in lost)
        else each
        for each in findings
    )


def _shown(shop: Shop, name: str) -> Result[Repair]:
    generation, _ = current(shop.home, name)
    need = _need(shop, name, generation)
    verdict: Result[Audit] = audit(shop, name)
    data = Repair(
        environment=name,
        generation=generation,
        dry_run=True,
        actions=need.actions,
        lost=need.plan.lost,
    )
    return Result(command="repair", data=data, findings=_left(shop, data, verdict.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What is to be done. ``whole`` is the snapshot with its files; ``drift`` None where all is as recorded."""

    plan: Mending
    actions: tuple[RepairAction, ...]
    whole: Snapshot
    drift: Drift | None


def _need(shop: Shop, name: str, generation: int) -> _Need:
    home = shop.home
    about = About(home=home, name=name, generation=generation)
    snapshot = about.snapshot()
    found: Found = about.look(snapshot, deep=False)
    facts = about.surroundings(found)
    whole = found.whole or snapshots.read(home, name, generation, snapshot.step, files=True)
    debris = found.observation.debris
    plan = mending_rules.mending(
        found.drift, whole.files, debris, facts.unowned, contents.known(home, name, generation)
    )
    return _Need(plan=plan, actions=mending_rules.actions(plan, found.drift, debris), whole=whole, drift=found.drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repairer:
    """One repair; the caller holds the environment's lock."""

    shop: Shop
    name: str
    generation: int
    need: _Need

    @property
    def _home(self) -> Home:
        return self.shop.home

    def run(self) -> Repair:
        home, name, generation, plan = self._home, self.name, self.generation, self.need.plan
        started = clock.monotonic()
        prefix = home.prefix(name, generation)
        beside = home.brought(name, generation)
        away = repairs.away(home, name, generation)
        hit = inside.poisoned(home, name, generation, self.need.whole.files)
        for other in hit.environments if hit is not None else ():
            environment, _, number = other.rpartition("/")
            stamp.forget(home, environment, int(number))
        repairs.begin(home, name, generation, plan)
        journal = Journal(home.journal(name, generation))
        journal.append("repair-started", restore=len(plan.files), remove=len(plan.remove), aside=len(plan.aside))
        delete(beside)
        try:
            supplied = self._mend(Mender(prefix, beside=beside, away=away), prefix, beside)
        except EnvforgeError as error:
            hint = f"{error.hint or 'mend that'}; `envforge repair {name}` then finishes what is left"
            raise LeftoverError(error.code, error.message, cause=error.cause, hint=hint) from error
        except OSError as error:
            raise _unfinished(name, error) from error
        finally:
            delete(beside)
        lost = tuple(replace(each, subject=shown(each.subject)) for each in (*plan.lost, *supplied.lost))
        journal.append("repair-finished", lost=[each.subject for each in lost])
        return Repair(
            environment=name,
            generation=generation,
            dry_run=False,
            actions=self._done(supplied),
            lost=lost,
            evicted=tuple(map(shown, supplied.evicted)),
            shared=hit.environments if hit is not None else (),
            aside=str(away) if away.exists() else None,
            seconds=clock.monotonic() - started,
        )

    def _mend(self, mender: Mender, prefix: Path, beside: Path) -> Supplied:
        plan = self.need.plan
        # First what Python needs to start, and what would run in it.
        for path in plan.aside:
            mender.set_aside(path)
        for file in plan.files:
            if file.source == "link":
                mender.link_in(file.link or "", file.path)
        kept = beside / "kept"
        damaged = {file: why for file in plan.files if (why := self._lay_out(kept, file)) is not None}
        # Bytes are also kept of files that a wheel may hold.
        again = [replace(file, source=mending_rules.source(file.owners)) for file in damaged if file.owners]
        ours = {file.path: file for file in plan.files if file.source == "kept" and file not in damaged}
        first = [path for path, file in ours.items() if self._absent.isdisjoint(file.owners)]
        for path in first:
            mender.move_in(kept / path, path)
        supplied = self._supply(mender, prefix, beside, again)
        supplied.lost += [Lost(subject=file.path, why=why) for file, why in damaged.items() if not file.owners]
        then = [path for path in ours.keys() - first if self._comes(ours[path], supplied)]
        for path in then:
            mender.move_in(kept / path, path)
        supplied.ready |= {path: (kept / path, ours[path].sha256 or "") for path in (*first, *then)}
        owners = {file.path: file.owners for file in self.need.drift.files} if self.need.drift is not None else {}
        for path in plan.remove:
            if not self._kept(supplied).intersection(owners.get(path, ())):
                mender.remove(path)
        mender.tidy()
        return supplied

    @property
    def _absent(self) -> set[str]:
        """Distributions that are gone or another."""
        drift = self.need.drift
        return {*drift.missing, *drift.changed} if drift is not None else set()

    def _comes(self, file: Restoration, supplied: Supplied) -> bool:
        """Whether the absent distribution comes that ``file``, of which the records hold the bytes, is a note of."""
        lost = {each.subject for each in supplied.lost}
        there = {owner for each in self.need.plan.files if each.path in supplied.ready for owner in each.owners}
        return not lost.intersection(file.owners) or not (there - self._kept(supplied)).isdisjoint(file.owners)

    def _lay_out(self, folder: Path, file: Restoration) -> str | None:
        """Copy what the records hold of a file to its place below ``folder``; why not, where they are damaged."""
        if file.source != "kept":
            return None
        place = (self._home, self.name, self.generation, file.sha256 or "")
        try:
            contents.read(*place)
        except EnvforgeError as error:
            return error.message
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(contents.path(*place), target)
        return None

    def _supply(self, mender: Mender, prefix: Path, beside: Path, more: Sequence[Restoration]) -> Supplied:
        """Bring what comes from wheels and move it in; ``ready`` of the answer is what was moved in."""
        every = (*self.need.plan.files, *self.need.plan.doubted, *more)
        wanted = [file for file in every if file.source == "wheel"]
        of_conda = [file for file in every if file.source == "package"]
        done = Supplied()
        if not wanted and not of_conda:
            return done
        shop, home = self.shop, self._home
        profile = self._profile()
        begun = beginning(home, self.name, self.generation)
        settings = replace(shop.settings, substitutes=dict(begun.get("substitutes", {})))
        logs = home.record(self.name, self.generation) / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        shop = replace(shop, settings=settings)
        with ground(shop, profile, base=self.need.whole.state) as under, bench(shop, profile, under) as work:

            def at(kind: type[P]) -> P:
                return kind(
                    shop=shop, work=work, prefix=prefix, whole=self.need.whole, beside=beside, kept=beside / "kept",
                    log=logs / "repair.log",
                )  # fmt: skip

            # Without the Python, no wheel comes.
            self._take(mender, prefix, at(CondaSupply).bring(of_conda), of_conda, done)
            supply = at(Supply)
            for with_pip in (False, True):
                self._take(mender, prefix, supply.bring(wanted, with_pip=with_pip), wanted, done)
        return done

    def _take(
        self, mender: Mender, prefix: Path, found: Supplied, wanted: Sequence[Restoration], done: Supplied
    ) -> None:
        done.lost += found.lost
        done.evicted += found.evicted
        done.ready |= self._move_in(mender, prefix, found, wanted)

    def _move_in(
        self, mender: Mender, prefix: Path, found: Supplied, wanted: Sequence[Restoration]
    ) -> dict[str, tuple[Path, str]]:
        kept = self._kept(found)
        ready = [file for file in wanted if file.path in found.ready and not kept.intersection(file.owners)]
        doubted = {file.path for file in self.need.plan.doubted}
        here = hashing.digests(prefix, [file.path for file in ready if file.path in doubted])
        moved = {}
        for file in ready:
            source, sha256 = found.ready[file.path]
            if here.get(file.path) != sha256:
                mender.move_in(source, file.path)
                moved[file.path] = (source, sha256)
        return moved

    def _profile(self) -> Profile:
        """As recorded, for the Python and of the backend that the environment has; an adopted one may have others."""
        profile = recorded(self._home, self.name, self.generation)
        minor = ".".join(self.need.whole.python.split(".")[:2])
        backend = Backend.CONDA if packages(self.need.whole.state) else Backend.VENV
        return replace(profile, python=minor, backend=backend)

    def _kept(self, supplied: Supplied) -> set[str]:
        """Distributions that stay another version, since the recorded one cannot be had: half of each is worse."""
        lost = {each.subject for each in supplied.lost}
        return lost.intersection(self.need.drift.changed) if self.need.drift is not None else set()

    def _done(self, supplied: Supplied) -> tuple[RepairAction, ...]:
        """What was done indeed."""
        plan, drift, kept = self.need.plan, self.need.drift, self._kept(supplied)
        owners = {file.path: file.owners for file in drift.files} if drift is not None else {}
        every = (*plan.files, *plan.doubted)
        files = tuple(file for file in every if file.source == "link" or file.path in supplied.ready)
        remove = tuple(path for path in plan.remove if not kept.intersection(owners.get(path, ())))
        return mending_rules.actions(replace(plan, files=files, remove=remove), drift)


def _unfinished(name: str, error: OSError) -> LeftoverError:
    return LeftoverError(
        "disk-full" if error.errno in FULL else "repair-unfinished",
        f"the repair of `{name}` could not be finished: {error.strerror or error}",
        cause=str(error.filename) if error.filename else None,
        hint=f"mend that, then `envforge repair {name}` again: it finishes what is left",
    )
