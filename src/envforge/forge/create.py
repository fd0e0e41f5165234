"""`create`: plan, refuse what ends open, build step by step in a new generation, prove it, switch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from envforge.engines.conda import LONGEST_PREFIX, prefix_too_long
from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError, InterruptedByUserError, LeftoverError, UsageError
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.plan import Plan, StepPlan
from envforge.model.profile import Backend, Profile
from envforge.model.progress import Note, StepDone, Working
from envforge.model.result import Build, Result
from envforge.model.smoked import SmokeResult
from envforge.model.state import State
from envforge.probe import launch, pythons, stubs
from envforge.probe import machine as machines
from envforge.store import profiles as kept_profiles
from envforge.store.atomic import FULL
from envforge.store.layout import check_name
from envforge.store.locking import hold
from envforge.system import clock

from . import condas, proof, quarantining, sealing
from .bench import Bench, bench
from .executor import Executor, Stopped
from .generations import put_in_place
from .ground import ground
from .interrupted import abandon, left_over
from .launching import remember
from .models import remind
from .plan import bundled_pip, first_planner, gpu_findings, predict
from .planner import Planner
from .pruning import thin_out
from .reach import reach, take_in
from .shop import Shop
from .suiting import driver_findings
from .trust import Recorded


def create(
    shop: Shop,
    profile: Profile,
    *,
    name: str | None = None,
    replace: bool = False,
    any_machine: bool = False,
    no_build: bool = False,
) -> Result[Build]:
    """Build ``profile`` as the environment ``name`` (the profile's own where None).

    Raises UsageError where the name is taken and not to be replaced, EnvforgeError where a step fails. A guard that
    ends open is no error: it is a finding of the result, and the environment in use is untouched.
    """
    with claimed(shop, profile.name if name is None else name, replace=replace) as chosen:
        return build(shop, profile, chosen, command="create", any_machine=any_machine, no_build=no_build)


@contextmanager
def claimed(shop: Shop, name: str, *, replace: bool) -> Iterator[str]:
    """Hold the lock of the environment ``name``, which is to be created. Raises UsageError as `create` does."""
    chosen = check_name(name)
    shop.home.ensure()
    with hold(shop.home, chosen, "create"):
        quarantining.journals(shop, chosen)
        current = shop.home.current(chosen)
        if current is not None and replace:
            quarantining.records(shop, chosen, current)
        if current is not None and not replace:
            raise UsageError(
                "environment-exists",
                f"the environment `{chosen}` exists (generation {current})",
                hint="build it anew beside the one in use with `--replace`, or choose another name with `--name`",
            )
        yield chosen


def build(
    shop: Shop,
    profile: Profile,
    name: str,
    *,
    command: str,
    any_machine: bool = False,
    no_build: bool = False,
    locked: Sequence[State] = (),
    exact: bool = False,
    recorded: Recorded | None = None,
    python: str | None = None,
    wheels: Path | None = None,
    base: State | None = None,
    shelf: Mapping[str, Stored] = MappingProxyType({}),
    planned: Callable[[Plan], None] | None = None,
) -> Result[Build]:
    """A new generation of ``name`` from ``profile``; the caller holds the environment's lock.

    ``locked``: what is installed after each of the leading steps, where that is not to be resolved again; with
    ``exact``, which wants one for every step, nothing is. ``recorded``: what is restored, which no file of the cache is
    believed to be unless its bytes are. ``python``: a version instead of the profile's. ``wheels``: a folder with those
    of the lock that were built elsewhere; ``shelf``: sha256 -> file, of those that were brought along. ``base``: what
    is there before the first step, which no solver is asked for then (only the backend conda has any). ``planned`` is
    told the plan before anything is built.
    """
    started = clock.monotonic()
    shop.home.refuse_foreign(name)
    wanted = python or profile.python
    chosen = replace(profile, python=wanted)
    refuse_long(shop, profile, name)
    host = machines.look(shop.home.root, software=False)
    unfit = gpu_findings(profile, host, Severity.ERROR) if not any_machine else ()
    if unfit:
        # Told before minutes of planning, not after.
        nothing = Plan(profile=profile, steps=(), findings=unfit)
        return Result(command=command, data=_unbuilt(nothing, name, clock.monotonic() - started), findings=unfit)
    with ExitStack() as stack:
        under = stack.enter_context(ground(shop, chosen, host, fetch=True, base=base, shelf=shelf))
        work = stack.enter_context(bench(shop, profile, under, shelf))
        if under.python is None:
            pythons.find(wanted)  # raises, and says what was looked at
            raise EnvforgeError("python-not-found", f"Python {wanted} is not on this machine")
        planner = first_planner(shop, work, profile, under, no_build=no_build, machine=host)
        if exact:
            if wheels is not None:
                take_in(work, wheels, locked)
            reach(shop, work, planner.state, locked)
        predicted = predict(shop, work, profile, planner, machine=host, locked=locked, exact=exact)
        driver = driver_findings(profile, planner.state, host, Severity.WARNING if any_machine else Severity.ERROR)
        predicted = replace(predicted, findings=(*predicted.findings, *driver))
        if _open(predicted.findings):
            return Result(
                command=command,
                data=_unbuilt(predicted, name, clock.monotonic() - started),
                findings=predicted.findings,
            )
        _warn_of_space(shop, predicted)
        if planned is not None:
            planned(predicted)
        maker = _Maker(
            shop=shop, work=work, profile=profile, name=name, predicted=predicted, planner=planner, host=host,
            locked=locked if exact else (), recorded=recorded,
        )  # fmt: skip
        return maker.make(command, started)


def refuse_long(shop: Shop, profile: Profile, name: str) -> None:
    """Raise EnvforgeError ``prefix-too-long`` where conda packages have no room for the path."""
    prefix = shop.home.prefix(name, shop.home.next_generation(name))
    if profile.backend is Backend.CONDA and len(str(prefix)) > LONGEST_PREFIX:
        raise prefix_too_long(prefix)


def _open(findings: tuple[Finding, ...]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def _warn_of_space(shop: Shop, predicted: Plan) -> None:
    if predicted.disk > predicted.free:
        text = f"it needs about {predicted.disk / 1e9:.1f} GB, and {predicted.free / 1e9:.1f} GB are free"
        shop.tell(Note(text=text, level="warning"))


def _unbuilt(predicted: Plan, name: str, seconds: float) -> Build:
    return Build(
        plan=predicted, environment=name, generation=0, prefix="", switched=False, continued=None, steps=(), smoke=(),
        differs=(), files=0, bytes=0, seconds=seconds,
    )  # fmt: skip


class _Maker:
    """Carries one build through, and leaves the records right however it ends.

    ``locked``: what is installed after each step, where nothing is to be resolved; else empty.
    """

    def __init__(
        self,
        *,
        shop: Shop,
        work: Bench,
        profile: Profile,
        name: str,
        predicted: Plan,
        planner: Planner,
        host: Machine,
        locked: Sequence[State] = (),
        recorded: Recorded | None = None,
    ) -> None:
        self._shop = shop
        self._work = work
        self._profile = profile
        self._name = name
        self._plan = predicted
        self._planner = planner
        self._host = host
        self._locked = locked
        self._recorded = recorded
        self._done: list[StepDone] = []

    def make(self, command: str, started: float) -> Result[Build]:
        home = self._shop.home
        left = left_over(self._shop, self._name, self._plan, self._work.facts.version)
        if left is not None and left.done and left.observation is not None:
            generation, first = left.generation, left.done
            executor = self._executor(generation)
            executor.resume(self._plan.base, self._plan.steps[:first], left.observation)
            continued = self._plan.steps[first - 1].step.name
            self._say(
                f"an interrupted build of `{self._name}` is whole up to the step `{continued}`: it goes on from there"
            )
        else:
            if left is not None:
                abandon(self._shop, self._name, left.generation)
            generation, first, continued = home.next_generation(self._name), 0, None
            home.make_record(self._name, generation)
            executor = self._executor(generation)
            executor.journal.append(
                "started",
                command=command,
                profile=self._profile.name,
                source=str(Path(self._profile.source).resolve()),
                substitutes=dict(self._shop.settings.substitutes),
                **({"backend": self._profile.backend.value} if self._profile.overridden else {}),
            )
            kept_profiles.write(home, self._name, generation, self._profile)
        try:
            checks, findings = self._build(executor, first, fresh=continued is None)
            switched = not _open(findings)
            if switched and self._profile.sealed:
                self._seal(generation)
        except (KeyboardInterrupt, InterruptedByUserError):
            self._note(executor, "interrupted")
            raise
        except EnvforgeError as error:
            self._note(executor, "failed", code=error.code, message=error.message, cause=error.cause)
            raise
        except OSError as error:
            raise self._broken_world(executor, error) from error
        if switched:
            remember(home, self._name, generation, launch.stamp(executor.prefix))
            put_in_place(home, self._name, generation)
            condas.keep_listed(self._shop, self._name)
            thin_out(self._shop, self._name)
            remind(self._shop, self._name, self._profile)
        else:
            executor.journal.append(
                "failed", findings=[f"{each.id} {each.subject}" for each in findings if each.severity is Severity.ERROR]
            )
        return Result(
            command=command,
            data=self._result(executor, generation, continued, checks, started, switched=switched),
            findings=findings,
        )

    def _build(
        self, executor: Executor, first: int, *, fresh: bool
    ) -> tuple[tuple[SmokeResult, ...], tuple[Finding, ...]]:
        general = tuple(finding for finding in self._plan.findings if finding.step is None)
        steps: Sequence[StepPlan] = self._plan.steps
        planner = self._planner
        try:
            if fresh:
                pip = bundled_pip(self._work)
                executor.begin([pip] if pip is not None else [], self._plan.base)
            position = first
            while position < len(steps):
                done, replan = executor.apply(position + 1, steps[position], planner)
                self._done.append(done)
                position += 1
                if replan and position < len(steps):
                    planner, later = self._plan_again(executor, position)
                    steps = (*steps[:position], *later)
        except Stopped as stopped:
            return (), (*stopped.findings, *general)
        executor.judge_compiled()
        if _open(executor.timeline.findings):
            return (), (*executor.timeline.findings, *general)
        if not self._profile.smoke:
            return (), (*executor.timeline.findings, *general)
        ran = proof.run(self._shop, executor.prefix, self._profile, executor.logs / "smoke.log", building=True)
        checks = ran.results
        executor.check_links("the smoke checks")
        hurt = executor.damage("the smoke checks")
        for check_result in checks:
            executor.journal.append(
                "smoke",
                name=check_result.smoke.name,
                ok=check_result.ok,
                ending=check_result.ending,
                skipped=check_result.skipped,
            )
        proof.remember(self._shop, self._name, executor.generation, ran)
        return checks, (*executor.timeline.findings, *proof.findings(checks), *hurt, *general)

    def _seal(self, generation: int) -> None:
        """Close what is proved, before it goes into use. Raises EnvforgeError."""
        self._shop.tell(Working(what="compiling bytecode"))
        tally = sealing.close(self._shop, self._name, generation)
        self._shop.tell(Working(what=None))
        self._say(f"sealed: {tally.files} files and {tally.folders} folders are read-only")

    def _plan_again(self, executor: Executor, position: int) -> tuple[Planner, tuple[StepPlan, ...]]:
        """A `run` step changed what is installed: the rest is planned anew from what is there. Raises EnvforgeError."""
        self._say("the step changed what is installed: the rest is planned again")
        planner = Planner(
            self._work,
            self._profile,
            self._shop.settings.substitutes,
            base=executor.state,
            metadata=stubs.metadata(executor.prefix),
            runner=sys.executable,
            timeline=executor.timeline.copy(),
        )
        rest = self._profile.steps[position:]
        if self._locked:
            later = tuple(planner.adopt(step, state) for step, state in zip(rest, self._locked[position:], strict=True))
        else:
            later = tuple(planner.predict(step) for step in rest)
        if _open(planner.timeline.findings):
            raise Stopped(planner.timeline.findings)
        return planner, later

    # -- small things -----------------------------------------------------------------------------------------------

    def _executor(self, generation: int) -> Executor:
        return Executor(
            self._shop,
            self._work,
            self._profile,
            name=self._name,
            generation=generation,
            host=self._host,
            recorded=self._recorded,
        )

    def _say(self, text: str) -> None:
        self._shop.tell(Note(text=text))

    @staticmethod
    def _note(executor: Executor, kind: str, **data: str | None) -> bool:
        """Write down how it ended; False where not even that can be written (a full disk)."""
        try:
            executor.journal.append(kind, **data)
        except EnvforgeError:
            return False
        return True

    def _broken_world(self, executor: Executor, error: OSError) -> EnvforgeError:
        """A full disk or a vanished folder, in the user's words."""
        full = error.errno in FULL
        message = f"the build of `{self._name}` failed: {error.strerror or error}"
        failure = EnvforgeError(
            "disk-full" if full else "system-error",
            message,
            cause=str(error.filename) if error.filename else None,
            hint="free some space (`df -h`), then run the same command again" if full else None,
        )
        if self._note(executor, "failed", code=failure.code, message=message):
            return failure
        return LeftoverError(
            failure.code,
            message,
            cause=failure.cause,
            hint=f"{failure.hint or 'mend that'}; the next `create` removes what is left in {executor.prefix}",
        )

    def _result(
        self,
        executor: Executor,
        generation: int,
        continued: str | None,
        checks: tuple[SmokeResult, ...],
        started: float,
        *,
        switched: bool,
    ) -> Build:
        return Build(
            plan=replace(self._plan, verdicts=executor.timeline.verdicts()),
            environment=self._name,
            generation=generation,
            prefix=str(executor.prefix),
            switched=switched,
            continued=continued,
            steps=tuple(self._done),
            smoke=checks,
            differs=tuple(text for done in self._done for text in done.differs),
            files=len(executor.rows),
            bytes=executor.bytes,
            seconds=clock.monotonic() - started,
            in_use=self._shop.home.current(self._name),
            activation=condas.activation(self._shop.home, self._name) if switched else None,
        )
