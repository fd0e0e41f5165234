"""Predicts steps one after the other in a phantom environment, and judges each as it goes."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.parser import BytesHeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envforge.engines.artefacts import Artefact
from envforge.engines.built import BuiltWheel
from envforge.engines.phantom import Phantom
from envforge.engines.remote import is_static, pkg_info
from envforge.engines.uv import Ask, Move
from envforge.model.errors import EnvforgeError
from envforge.model.native import Compiled
from envforge.model.plan import Change, StepPlan
from envforge.model.profile import Action, Guard, Profile, Step
from envforge.model.progress import Working
from envforge.model.state import Distribution, State, distributions, is_package
from envforge.model.state import packages as packages_of
from envforge.rules.because import explain
from envforge.rules.context import Moment, requested_by
from envforge.rules.diff import changes as differences
from envforge.rules.diff import told
from envforge.system import clock, process

from . import direct, packages
from .bench import Bench
from .constraints import bounds, constraints, guards_in_the_way, held, requirement_name
from .sdists import sdist_wheel
from .timeline import Timeline
from .variants import inside, variant


class Planner:
    """``state``: what is installed after the last predicted step; ``artefacts``: (step, name) -> the file it brings.

    A planner may start from a real environment in the middle of a build: ``base`` is then what was found there,
    ``metadata`` its METADATA, ``timeline`` what came before, ``cards`` and ``wheels`` included.
    """

    def __init__(
        self,
        bench: Bench,
        profile: Profile,
        substitutes: Mapping[str, str],
        *,
        base: State,
        metadata: Mapping[str, bytes],
        timeline: Timeline | None = None,
        no_build: bool = False,
        runner: str,
        cards: tuple[str, ...] = (),
        wheels: Mapping[str, tuple[Compiled, ...]] | None = None,
    ) -> None:
        self._bench = bench
        self._profile = profile
        self._no_build = no_build
        self._assumed = False
        self.state: dict[str, Distribution] = dict(base)
        self.artefacts: dict[tuple[str, str], Artefact] = {}
        self.helped: set[Guard] = set()
        self.timeline = timeline or Timeline(
            profile, bench.facts.markers, substitutes, base=dict(base), cards=cards, wheels=wheels
        )
        self._phantom = Phantom(
            Path(tempfile.mkdtemp(dir=bench.scratch)) / "phantom",
            python=bench.python,
            version=bench.facts.version,
            platform=bench.facts.platform,
            runner=runner,
        )
        for name, item in distributions(base).items():
            self._phantom.add(name, item.version, metadata.get(name) or _least(name, item.version))

    # -- one step --------------------------------------------------------------------------------------------------

    def predict(self, step: Step) -> StepPlan:
        """What ``step`` would change, judged. Raises EnvforgeError where it cannot be done at all."""
        started = clock.monotonic()
        before = dict(self.state)
        builds: list[str] = []
        notes: list[str] = []
        match step.action:
            case Action.CONDA:
                self._take(packages.predict(self._bench, self._profile, step, before))
            case Action.RUN:
                self._assumed = True
            case Action.UNINSTALL:
                self._refuse_condas(step, before)
                absent = [name for name in step.arguments if name not in before]
                notes += [f"`{name}` is not installed" for name in absent]
                self._leave(name for name in step.arguments if name in before)
            case _:
                self._resolve(step, before, builds)
        return self._foreseen(step, before, started, builds=tuple(builds), notes=tuple(notes))

    def adopt(self, step: Step, state: State) -> StepPlan:
        """Take ``state`` (of a lock) as what ``step`` leaves, without asking a resolver. Raises EnvforgeError.

        What a program put there no lock gives back: it is left as it is now.
        """
        started = clock.monotonic()
        before = dict(self.state)
        if step.action is Action.RUN:
            return self.predict(step)
        moved = [
            each
            for each in differences(distributions(before), distributions(state))
            if (each.after or before[each.name]).sha256 is not None
        ]
        found = [(change, self._bench.router.locked(change.after)) for change in moved if change.after is not None]
        entering = [(change.name, artefact, self._bench.router.metadata(artefact)) for change, artefact in found]
        if step.action is Action.CONDA:
            self._take(packages.after(self._bench, step, before, packages_of(state)))
        self._leave(change.name for change in moved if change.before is not None)
        for name, artefact, metadata in entering:
            self.artefacts[(step.name, name)] = artefact
            self.state[name] = distribution(artefact, metadata)
            self._phantom.add(name, artefact.version, metadata)
        return self._foreseen(step, before, started, notes=("from the lock, not resolved",))

    def _foreseen(
        self, step: Step, before: State, started: float, *, builds: tuple[str, ...] = (), notes: tuple[str, ...] = ()
    ) -> StepPlan:
        """Explain and judge what `self.state` now is, as what ``step`` made of ``before``."""
        causes = explain(
            before,
            self.state,
            step,
            requested_before=requested_by(moment.step for moment in self.timeline.moments),
            markers=self._bench.facts.markers,
            constraints=held(self._profile, step),
        )
        if step.action is Action.CONDA:
            causes = {**causes, **packages.causes(before, self.state, step)}
        changes = told(
            Change(
                name=name,
                before=before.get(name),
                after=self.state.get(name),
                because=causes.get(name),
                download=self._download(step, name),
            )
            for name in sorted({*before, *self.state})
            if before.get(name) != self.state.get(name)
        )
        asked = {canonicalize_name(requirement_name(line)) for line in step.arguments} if _asks(step) else set()
        for name in asked & self.state.keys():
            self.state[name] = replace(self.state[name], requested=True)
        opens, heals = self.timeline.add(Moment(step=step, state=dict(self.state)), causes)
        return StepPlan(
            step=step,
            changes=changes,
            state=dict(self.state),
            opens=opens,
            heals=heals,
            assumed=self._assumed and step.action is not Action.RUN,
            builds=builds,
            notes=notes,
            seconds=clock.monotonic() - started,
        )

    def _resolve(self, step: Step, before: State, builds: list[str]) -> None:
        base = Path(self._profile.source).parent
        requirements, built = direct.localise(self._bench, step, base, no_build=self._no_build)
        builds += built
        if step.action is Action.PIN:
            self._all_installed(step, before)
        ask = Ask(
            requirements=requirements,
            only=step.indexes,
            constraints=constraints(self._profile, step, self.state, requirements),
            build_constraints=step.build_constraints,
            upgrade=tuple(requirement_name(line) for line in requirements) if step.upgrade else (),
            no_deps=step.no_deps,
            no_build=self._no_build,
            no_build_isolation=step.no_build_isolation,
            environment={} if self._no_build else step.environment,
            variant=variant(step),
            inside=inside(step, before),
        )
        scratch = Path(tempfile.mkdtemp(dir=self._bench.scratch))
        try:
            moves = self._bench.uv.resolve(self._phantom.target, ask, scratch, step.name)
        except EnvforgeError as error:
            error.hint = guards_in_the_way(self._profile, step, self.state, error) or error.hint
            raise
        self._try_constraints(step, ask, moves, scratch)
        self._leave(move.name for move in moves if move.action == "uninstalled")
        installed = [move for move in moves if move.action == "installed"]
        found = [self._bench.router.find(move.name, move.version, step.indexes) for move in installed]
        sdists = [artefact for artefact in found if not artefact.wheel]
        hidden = [artefact.sdist for artefact in found if artefact.sdist is not None]
        if sdists or hidden:
            builds += self._build(step, sdists, hidden)
        builds += [sdist.file for sdist in hidden]
        for artefact in found:
            self._enter(step, artefact)

    @staticmethod
    def _refuse_condas(step: Step, before: State) -> None:
        """What a conda package brought goes with it alone: conda would go on listing it."""
        for name in step.arguments:
            origin = before[name].origin if name in before else None
            if origin is not None and origin.kind == "conda":
                raise EnvforgeError(
                    "conda-owned",
                    f"the step `{step.name}` uninstalls `{name}`, which the conda package `{origin.package}` brought",
                    hint="leave that package out of the profile, or install another version over it",
                )

    def _take(self, brought: packages.Brought) -> None:
        """Go on from what conda packages leave."""
        old, new = distributions(self.state), distributions(brought.state)
        moved = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        self._leave(moved & old.keys())
        for name in moved & new.keys():
            self._phantom.add(name, new[name].version, brought.metadata.get(name) or _least(name, new[name].version))
        self.state = dict(brought.state)

    def _leave(self, names: Iterable[str]) -> None:
        gone = [(name, self.state.pop(name).version) for name in names]
        self._phantom.remove(gone)

    def _enter(self, step: Step, found: Artefact) -> None:
        name, version = found.name, found.version
        # An sdist may have been built meanwhile, and is then a wheel.
        artefact = found if found.wheel else self._bench.router.find(name, version, step.indexes)
        if artefact.wheel:
            metadata = self._bench.router.metadata(artefact)
        else:
            metadata = pkg_info(self._bench.router.fetch(artefact))
        self.artefacts[(step.name, name)] = artefact
        self.state[name] = distribution(artefact, metadata)
        self._phantom.add(name, version, metadata)

    def _build(self, step: Step, sdists: list[Artefact], hidden: list[Artefact]) -> list[str]:
        """Build what states its metadata only by being built, once and for good; returns the files whose code ran.

        What states it without (PEP 643) is built when it is installed, those of ``hidden`` inside the environment.
        """
        if self._no_build:
            files = ", ".join(f"`{artefact.file}`" for artefact in (*sdists, *hidden))
            raise EnvforgeError(
                "build-refused",
                f"the step `{step.name}` needs {files}, which must be built, and --no-build forbids it",
                hint="name versions that have a wheel, or leave out --no-build",
            )
        tell = self._bench.tell
        tell(Working(what=f"fetching sdists of {step.name}"))
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            try:
                static = pool.map(self._static, sdists)
                dynamic = [artefact for artefact, stated in zip(sdists, static, strict=True) if not stated]
                begun = itertools.count(1)

                def built(artefact: Artefact) -> BuiltWheel:
                    tell(Working(what=f"building {artefact.name} ({next(begun)} of {len(dynamic)})"))
                    return sdist_wheel(self._bench, step, artefact)

                wheels = list(pool.map(built, dynamic))
            except BaseException:
                # The pool waits for its threads, and they for their builds: those must end first.
                pool.shutdown(wait=False, cancel_futures=True)
                process.end_all()
                raise
        unfit = [own.file for own in wheels if not self._bench.fits(own)]
        if unfit:
            raise EnvforgeError("build-failed", f"`{unfit[0]}` was built, and does not fit this Python")
        tell(Working(what=f"planning {step.name}"))
        return [artefact.file for artefact in dynamic]

    def _static(self, artefact: Artefact) -> bool:
        return is_static(self._bench.router.fetch(artefact))

    # -- constraints -------------------------------------------------------------------------------------------------

    def _try_constraints(self, step: Step, ask: Ask, moves: tuple[Move, ...], scratch: Path) -> None:
        """Where a guard without `constrain` is about to open, ask the resolver whether that would have helped."""
        chosen = {move.name: move.version for move in moves if move.action == "installed"}
        for guard in self._profile.guards:
            limits = bounds(guard, self.state, chosen, step.allow)
            if limits:
                try:
                    bounded = replace(ask, constraints=(*ask.constraints, *limits))
                    self._bench.uv.resolve(self._phantom.target, bounded, scratch, step.name)
                except EnvforgeError:
                    continue
                self.helped.add(guard)

    def _applies(self, line: str) -> bool:
        marker = Requirement(line).marker
        return marker is None or marker.evaluate(dict(self._bench.facts.markers))

    def _all_installed(self, step: Step, before: State) -> None:
        absent = [
            name
            for line in step.arguments
            if (name := canonicalize_name(requirement_name(line))) not in before and self._applies(line)
        ]
        if absent:
            names = ", ".join(f"`{name}`" for name in absent)
            raise EnvforgeError(
                "pin-absent",
                f"the step `{step.name}` pins {names}, which {'is' if len(absent) == 1 else 'are'} not installed then",
                cause="a pin changes distributions that are installed",
                hint="use `install` for a distribution that is to be added",
            )

    def _download(self, step: Step, name: str) -> int | None:
        if is_package(name) and name in self.state:
            return to_fetch(self._bench, self.state[name])
        artefact = self.artefacts.get((step.name, name)) if name in self.state else None
        if artefact is None or artefact.sha256 is None:
            return artefact.size if artefact else None
        return 0 if artefact.built or self._bench.known.size(artefact.sha256) is not None else artefact.size


def to_fetch(bench: Bench, item: Distribution) -> int | None:
    """Bytes of a conda package that the cache lacks; 0 where it was installed from there before."""
    return 0 if item.sha256 is not None and bench.known.size(item.sha256) is not None else item.size


def _asks(step: Step) -> bool:
    return step.action in {Action.INSTALL, Action.BACKFILL, Action.PIN}


def _least(name: str, version: str) -> bytes:
    """METADATA of what lies there without any."""
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()


def distribution(artefact: Artefact, metadata: bytes) -> Distribution:
    """The distribution that installing ``artefact`` would make, as far as metadata tells."""
    head, _, _ = metadata.replace(b"\r\n", b"\n").partition(b"\n\n")
    headers = BytesHeaderParser().parsebytes(head + b"\n\n")
    return Distribution(
        name=artefact.name,
        version=artefact.version,
        build=artefact.build,
        index=artefact.index,
        file=artefact.file,
        # Of an sdist, the hash of the wheel that it gives is not known before it is built.
        sha256=artefact.sha256 if artefact.wheel else None,
        size=artefact.size,
        url=artefact.url,
        requires=tuple(str(line) for line in headers.get_all("Requires-Dist", ())),
        requires_python=str(headers["Requires-Python"]) if "Requires-Python" in headers else None,
        origin=artefact.built,
    )
