"""Builds a generation: each step is applied, looked at, compared with the plan, judged and remembered."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envforge.engines import activation
from envforge.engines.artefacts import Artefact
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.plan import StepPlan
from envforge.model.profile import Action, Profile, Step
from envforge.model.progress import Note, StepDone, Working
from envforge.model.state import FileRow, Observation, State, distributions, shown
from envforge.probe import prefix as prefixes
from envforge.probe import processes
from envforge.rules.context import Moment
from envforge.rules.diff import changes as differences
from envforge.rules.diff import told
from envforge.store import native_seen, snapshots
from envforge.store.journal import Journal
from envforge.system import clock, process

from . import inside
from . import native as natives
from .bench import Bench
from .comparing import compare, enriched, foreign, journalled
from .conda_build import CondaBuild
from .damage import damage
from .planner import Planner
from .recorder import Recorder
from .sdists import sdist_wheel
from .shop import Shop
from .suiting import cards
from .timeline import Timeline
from .trust import Recorded, Trust
from .variants import inside as inside_key
from .variants import variant
from .watching import Watched


class Stopped(Exception):  # noqa: N818 - a verdict, not an error
    """A guard opened that the plan did not foresee. ``findings`` are what stands open."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("a guard opened unpredicted")
        self.findings = findings


class Executor:
    """One generation under construction. ``host``: this machine; ``recorded``: what is restored."""

    def __init__(
        self,
        shop: Shop,
        work: Bench,
        profile: Profile,
        *,
        name: str,
        generation: int,
        host: Machine,
        recorded: Recorded | None = None,
    ) -> None:
        self._shop = shop
        self._work = work
        self._profile = profile
        self._name = name
        self.generation = generation
        self._host = host
        self._recorder = Recorder(
            shop=shop, work=work, name=name, generation=generation, driver=host.driver, cards=cards(profile, host)
        )
        self.prefix = shop.home.prefix(name, generation)
        self.journal = Journal(shop.home.journal(name, generation))
        self._trust = Trust(work.known, self.prefix, recorded)
        self.logs = shop.home.record(name, generation) / "logs"
        self.rows: tuple[FileRow, ...] = ()
        self.state: State = {}
        self.bytes = 0
        self._fresh: dict[str, Artefact] = {}
        self._before: State = {}
        self.timeline: Timeline
        self._observation: Observation

    # -- the empty environment ---------------------------------------------------------------------------------------

    def begin(self, base: Sequence[Artefact], expected: State) -> None:
        """An empty environment with what its Python brings, ``expected``. Raises EnvforgeError."""
        assert self._work.python is not None  # noqa: S101 - create has found it
        self.prefix.parent.mkdir(parents=True, exist_ok=True)
        self._shop.home.make_folder(self.logs)
        if self._work.conda is not None:
            self._packages().base(expected, self._log(0, "base"))
            self._take(0, None, self._look(), expected)
            self._open_timeline(self.state, self._observation)
            return
        self._work.uv.venv(self.prefix, self._work.python)
        for path in activation.equip(self.prefix, self._profile.variables):
            text = f"`{path}` does not set the profile's variables: uv wrote it otherwise than envforge knows it"
            self._shop.tell(Note(text=text, level="warning"))
        if base:
            completed = self._work.uv.install(self.prefix, base, self._work.scratch, self._log(0, "base"))
            if not completed.ok:
                raise self._work.uv.failure(completed, "base")
        observation = self._look()
        if self._trust.poisoned(observation, expected, set(expected)):
            self._work.uv.evict(tuple(expected))
            self._work.uv.uninstall(self.prefix, tuple(expected), self._log(0, "base"))
            self._work.uv.install(self.prefix, base, self._work.scratch, self._log(0, "base"))
            observation = self._look()
        observation = self._trust.witnessed(observation, expected)
        self._take(0, None, observation, expected)
        self._open_timeline(self.state, observation)

    def _packages(self) -> CondaBuild:
        return CondaBuild(shop=self._shop, work=self._work, profile=self._profile, prefix=self.prefix)

    def _open_timeline(self, state: State, observation: Observation) -> None:
        self.timeline = Timeline(
            self._profile,
            self._work.facts.markers,
            self._shop.settings.substitutes,
            base=state,
            observation=observation,
            cards=natives.cards(self._profile, self._host),
            wheels=natives.cache(self._shop.home).wheels(),
        )

    # -- a step ------------------------------------------------------------------------------------------------------

    def apply(self, position: int, predicted: StepPlan, planner: Planner) -> tuple[StepDone, bool]:
        """Do one step; returns what was done, and whether later steps must be planned again.

        Raises EnvforgeError when the step fails, Stopped when it opens a guard that the plan did not foresee.
        """
        step = predicted.step
        started = clock.monotonic()
        self.journal.append("step-started", step=position, name=step.name, action=step.action.value)
        before, rows = self.state, self.rows
        self._trust.begin()
        self._before = before
        self._fresh = {}
        ran = step.action is Action.RUN
        conda = step.action is Action.CONDA
        if ran:
            self._run(position, step)
        elif conda:
            self._packages().step(position, predicted, self.state, self.rows, self._log(position, step.name))
        else:
            self._change(position, predicted, planner)
        # What was not touched need not be looked at again; a foreign program may have touched anything.
        untouched = not predicted.changes and not ran
        observation = self._observation if untouched else self._look()
        expected = before if ran else {**predicted.state, **self._built(predicted.state)}
        if not untouched and not ran and not conda:
            observation = self._trusted(position, predicted, planner, observation, expected)
        if not untouched:
            observation = self._trust.witnessed(observation, expected)
        state = self._take(position, step, observation, expected)
        replan = ran and bool(differences(before, state))
        # Which distributions a conda package brings is only known for sure when it is there.
        replan = replan or (conda and bool(differences(distributions(expected), distributions(state))))
        replan = replan or any(
            state[name].requires != predicted.state[name].requires for name in self._fresh if name in state
        )
        unplanned = () if ran or replan else compare(predicted, before, state)
        hurt = (
            damage(
                step.name,
                self.prefix,
                rows,
                observation.files,
                before=before,
                after=state,
                profile=self._profile,
                known=self._work.known,
            )
            if ran
            else ()
        )
        moment = Moment(step=step, state=state, observation=observation)
        causes = {change.name: change.because for change in predicted.changes if change.because is not None}
        opens, heals = self.timeline.add(moment, causes)
        done = StepDone(
            name=step.name,
            action=step.action.value,
            position=position,
            count=len(self._profile.steps),
            seconds=clock.monotonic() - started,
            changes=told(replace(each, because=causes.get(each.name)) for each in differences(before, state)),
            opens=opens,
            heals=heals,
            differs=tuple(each.message for each in unplanned),
        )
        self.journal.append("step-finished", **journalled(position, done))
        self._shop.tell(done)
        foreseen = {finding.key for finding in predicted.opens}
        surprises = [finding for finding in opens if finding.severity is Severity.ERROR and finding.key not in foreseen]
        wrong = tuple(each for each in (*unplanned, *hurt) if each.severity is Severity.ERROR)
        if wrong or (surprises and not replan):
            raise Stopped((*self.timeline.findings, *unplanned, *hurt))
        return done, replan

    def judge_compiled(self) -> None:
        """What compiled files need and GPUs can run, as a last moment: too costly a look for every step."""
        self._shop.tell(Working(what="looking at compiled files"))
        home, name, generation = self._shop.home, self._name, self.generation
        snapshot = snapshots.latest(home, name, generation, files=True)
        assert snapshot is not None  # noqa: S101 - every build takes one of its empty environment
        found = natives.recorded(
            home, self.prefix, snapshot, rows=self.rows, state=self.state, changed=(), profile=self._profile
        )
        key = natives.key(self.prefix, natives.looks_of(self.rows), self.state, self._profile)
        native_seen.write(home, name, generation, found, key=key)
        self._shop.tell(Working(what=None))
        last = self._profile.steps[-1] if self._profile.steps else None
        moment = Moment(step=last, state=self.state, observation=self._observation, native=found)
        self.timeline.add(moment, {})

    def damage(self, check: str) -> tuple[Finding, ...]:
        """What foreign code that ran since did to the environment; ``check`` is what to call it.

        Unlike a step, a check may not even change what is installed by proper means.
        """
        observation = prefixes.look(self.prefix)
        after = enriched(observation.state, self.state)
        hurt = damage(
            check,
            self.prefix,
            self.rows,
            observation.files,
            before=self.state,
            after=after,
            profile=self._profile,
            known=self._work.known,
        )
        told = {each.subject for each in hurt}
        moved = tuple(each for each in foreign(check, self.state, after) if each.subject not in told)
        for each in processes.using(self.prefix):
            self._shop.tell(
                Note(text=f"process {each.pid} that {check} started still runs: {' '.join(each.argv)}", level="warning")
            )
        return (*hurt, *moved)

    def _change(self, position: int, predicted: StepPlan, planner: Planner) -> None:
        log = self._log(position, predicted.step.name)
        gone = [
            change.name
            for change in predicted.changes
            if change.before is not None and (change.after is None or change.after.version == change.before.version)
        ]
        if gone:
            completed = self._work.uv.uninstall(self.prefix, gone, log)
            if not completed.ok:
                raise self._work.uv.failure(completed, predicted.step.name)
        chosen = [
            planner.artefacts[(predicted.step.name, change.after.name)]
            for change in predicted.changes
            if change.after is not None
        ]
        later = [artefact for artefact in chosen if artefact.sdist is not None]
        ready = [self._ready(predicted.step, artefact) for artefact in chosen if artefact.sdist is None]
        self._install(predicted, ready, log)
        for artefact in later:
            # Its build needs what the environment holds (`no_build_isolation`): only now can it be done.
            self._install(predicted, [self._build(predicted.step, artefact.sdist or artefact, inside=True)], log)

    def _trusted(
        self, position: int, predicted: StepPlan, planner: Planner, observation: Observation, expected: State
    ) -> Observation:
        """What was found, once no file of this step is a damaged copy out of the cache. Raises EnvforgeError."""
        names = {change.name for change in predicted.changes if change.after is not None}
        if self._trust.put_back(observation):
            observation = self._look()
        hit = self._trust.poisoned(observation, expected, names)
        if hit:
            self._fetch_anew(position, predicted, planner, expected, hit)
            observation = self._look()
            if self._trust.put_back(observation):
                observation = self._look()
        return observation

    def _fetch_anew(
        self,
        position: int,
        predicted: StepPlan,
        planner: Planner,
        expected: State,
        hit: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Take poisoned copies out of the cache, and install what their index serves. Raises EnvforgeError."""
        log = self._log(position, predicted.step.name)
        for name, paths in hit.items():
            text = f"the cache held a damaged copy of `{name}` ({paths[0]}): it is taken out and fetched anew"
            self._shop.tell(Note(text=text, level="warning"))
            self._work.known.forget(expected[name].sha256 or "")
        self._work.uv.evict(tuple(hit))
        self._work.uv.uninstall(self.prefix, tuple(hit), log)
        artefacts = [planner.artefacts[(predicted.step.name, name)] for name in hit]
        self._install(predicted, [self._ready(predicted.step, artefact) for artefact in artefacts], log)
        left = self._trust.damaged(tuple(hit), expected)
        if left:
            names = ", ".join(f"`{name}`" for name in left)
            raise EnvforgeError(
                "cache-damaged",
                f"{names} cannot be installed as its RECORD says, though it was fetched anew",
                hint=f"remove the cache `{self._work.cache / 'uv'}` and run the command again",
            )

    def _ready(self, step: Step, artefact: Artefact) -> Artefact:
        return self._work.router.hashed(artefact) if artefact.wheel else self._build(step, artefact, inside=False)

    def _build(self, step: Step, sdist: Artefact, *, inside: bool) -> Artefact:
        self._shop.tell(Working(what=f"building {sdist.file}"))
        self._work.router.begin(
            step.indexes, unbuilt=step.no_build_isolation, variant=variant(step), inside=inside_key(step, self._before)
        )
        own = sdist_wheel(self._work, step, sdist, str(self.prefix / "bin" / "python") if inside else None)
        self._shop.tell(Working(what=None))
        self._fresh[sdist.name] = replace(self._work.router.own(own), index=sdist.index)
        return self._fresh[sdist.name]

    def _built(self, predicted: State) -> State:
        """What the plan could not know of wheels that were built in this step."""
        return {
            name: replace(
                predicted[name], file=artefact.file, sha256=artefact.sha256, size=artefact.size, origin=artefact.built
            )
            for name, artefact in self._fresh.items()
            if name in predicted
        }

    def _install(self, predicted: StepPlan, artefacts: Sequence[Artefact], log: Path) -> None:
        if not artefacts:
            return
        engine = self._work.pip if self._shop.settings.engine == "pip" else self._work.uv
        to_fetch = sum(change.download or 0 for change in predicted.changes)
        with Watched(self._shop, f"{predicted.step.name}: {len(artefacts)} distributions", to_fetch) as watch:
            completed = engine.install(self.prefix, artefacts, self._work.scratch, log, watch)
        if not completed.ok:
            error = self._work.uv.failure(completed, predicted.step.name)
            raise EnvforgeError(
                error.code, error.message, cause=error.cause,
                hint=f"{error.hint or 'see what the engine said'}; all of it is in {log}",
            )  # fmt: skip

    def _run(self, position: int, step: Step) -> None:
        log = self._log(position, step.name)
        proxies = self._work.proxies
        network = {
            "http_proxy": proxies.http,
            "https_proxy": proxies.https,
            "no_proxy": ",".join(proxies.exempt) or None,
        }
        extra = {name: value for name, value in network.items() if value} | dict(step.environment)
        env = inside.variables(self.prefix, self._profile, self._shop.tell, extra)
        program = shutil.which(step.arguments[0], path=env["PATH"])
        if program is None:
            raise EnvforgeError(
                "program-not-found",
                f"the step `{step.name}` runs `{step.arguments[0]}`, which is not in the environment or on PATH",
            )
        self._shop.tell(Working(what=f"running {step.name}"))
        completed = process.run([program, *step.arguments[1:]], env=env, cwd=self.prefix, log=log)
        self._shop.tell(Working(what=None))
        self.check_links(step.name)
        if not completed.ok:
            raise EnvforgeError(
                "run-failed", f"the step `{step.name}` failed: {completed.ending()}", cause=completed.tail(),
                hint=f"all that it said is in {log}",
            )  # fmt: skip

    def check_links(self, step: str) -> None:
        """After foreign code ran: no file shared by hard link may have been written in place. Raises EnvforgeError."""
        hit = inside.poisoned(self._shop.home, self._name, self.generation, self.rows)
        if hit is None:
            return
        evicted = "nothing"
        if hit.owners:
            gone = self._work.evict(hit.owners, self.state)
            evicted = ", ".join(f"`{shown(owner)}`" for owner in hit.owners) if gone else "nothing, which failed"
            for owner in hit.owners:
                item = self.state.get(owner)
                if item is not None and item.sha256 is not None:
                    self._work.known.forget(item.sha256)
        others = ", ".join(f"`{other}`" for other in hit.environments)
        anew = f"build {others} anew, then this one" if others else "build this environment anew"
        number = "a file" if len(hit.paths) == 1 else f"{len(hit.paths)} files"
        more = f", and {len(hit.paths) - 5} more" if len(hit.paths) > 5 else ""
        raise EnvforgeError(
            "shared-file-written",
            f"`{step}` wrote into {number} that the environment shares with the cache: "
            + ", ".join(hit.paths[:5])
            + more,
            cause="they are hard links: every environment that holds them changed too; "
            + (f"these do: {others}" if others else "no other environment holds them"),
            hint=f"the cache was rid of {evicted}; {anew}, and set `link_mode: copy` where steps edit files",
        )

    # -- looking and remembering ---------------------------------------------------------------------------------------

    def resume(self, base: State, done: Sequence[StepPlan], observation: Observation) -> None:
        """Take up an interrupted build: what lies there is what the last of the steps ``done`` left."""
        expected = done[-1].state if done else base
        self._observation = observation
        self.rows = observation.files
        self.bytes = observation.bytes
        self.state = enriched(observation.state, expected)
        self._open_timeline(base, observation)
        for step in done:
            last = step is done[-1]
            moment = Moment(
                step=step.step,
                state=self.state if last else step.state,
                observation=observation if last else None,
            )
            self.timeline.add(moment, {})
        self.journal.append("resumed", step=len(done))

    def _look(self) -> Observation:
        self._shop.tell(Working(what="looking at what was installed"))
        observation = prefixes.look(self.prefix)
        self._shop.tell(Working(what=None))
        return observation

    def _take(self, position: int, step: Step | None, observation: Observation, expected: State) -> State:
        """Remember what was found, as what now is."""
        self._observation = observation
        self.rows = observation.files
        self.bytes = observation.bytes
        self.state = enriched(observation.state, expected)
        self._recorder.remember(position, step.name if step else None, observation, self.state, self._trust.lies)
        return self.state

    def _log(self, position: int, name: str) -> Path:
        return self.logs / f"{position}-{name}.log"
