"""`plan`: what every step would change, predicted without installing anything, with the verdict of every guard."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from envforge.engines.artefacts import Artefact
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.plan import Plan, StepPlan
from envforge.model.profile import Profile, Step
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.state import Distribution, Origin, State, packages
from envforge.probe import ambient
from envforge.probe import machine as machines
from envforge.profiles import matching
from envforge.rules.suggest import constrain_would_help

from . import native as natives
from . import suiting
from .bench import Bench, bench
from .ground import Ground, ground
from .planner import Planner, distribution, to_fetch
from .shop import Shop

# Unpacked, the wheels of a GPU environment take some 2.4 times their size (11.6 GB from 4.9 GB, measured on xinv100).
# The figure is used only for files that were never installed from this cache.
_UNPACKED = 2.4


def plan(shop: Shop, profile: Profile, *, machine: Machine | None = None, no_build: bool = False) -> Result[Plan]:
    """Predict ``profile`` on this machine, or for the saved ``machine``. Nothing is written outside the cache."""
    with ground(shop, profile, machine) as under, bench(shop, profile, under) as work:
        host = machine or (machines.look(shop.home.root, software=False) if profile.gpu else None)
        planner = first_planner(shop, work, profile, under, no_build=no_build, machine=host)
        predicted = predict(shop, work, profile, planner, machine=host)
        judged = host or suiting.host(shop, profile, planner.state)
        if judged is not None:
            driver = suiting.driver_findings(profile, planner.state, judged)
            predicted = replace(predicted, findings=(*predicted.findings, *driver))
    return Result(command="plan", data=predicted, findings=predicted.findings)


def first_planner(
    shop: Shop, work: Bench, profile: Profile, under: Ground, *, no_build: bool, machine: Machine | None = None
) -> Planner:
    """A planner over the empty environment: nothing in it but what comes with the Python.

    ``machine``: whose cards the GPU code of what is installed is judged by, besides those that the profile names.
    """
    base: dict[str, Distribution] = dict(under.state)
    metadata: dict[str, bytes] = dict(under.metadata)
    artefact = bundled_pip(work)
    if artefact is not None:
        data = work.built.metadata(artefact.id)
        base[artefact.name] = distribution(artefact, data)
        metadata[artefact.name] = data
    return Planner(
        work, profile, shop.settings.substitutes, base=base, metadata=metadata, no_build=no_build,
        runner=sys.executable,
        cards=natives.cards(profile, machine) if machine is not None else (),
        wheels=natives.cache(shop.home).wheels(),
    )  # fmt: skip


def bundled_pip(work: Bench) -> Artefact | None:
    """The pip that the Python of a venv brings, as a wheel of envforge's own store; None where it brings none."""
    if work.conda is not None or work.facts.pip_wheel is None:
        return None
    wheel = Path(work.facts.pip_wheel)
    own = work.built.keep(wheel, Origin(kind="python", url=None), None)
    return work.router.own(own)


def predict(
    shop: Shop,
    work: Bench,
    profile: Profile,
    planner: Planner,
    *,
    machine: Machine | None = None,
    locked: Sequence[State] = (),
    exact: bool = False,
) -> Plan:
    """Let ``planner`` predict every step of ``profile``, and sum up.

    ``machine`` is what the cards and the free space are judged by, this one where None.
    ``locked``: states of leading steps, taken as they are; where one cannot be, its step is resolved anew, unless
    ``exact``: then that is an EnvforgeError.
    """
    base = dict(planner.state)
    steps: list[StepPlan] = []
    for position, step in enumerate(profile.steps, 1):
        shop.tell(Working(what=f"planning {step.name} ({position}/{len(profile.steps)})"))
        adopt = planner.adopt if exact else partial(_adopted, shop, planner)
        adopted = adopt(step, locked[position - 1]) if position <= len(locked) else None
        if adopted is None:
            locked = locked[: position - 1]
        steps.append(adopted or planner.predict(step))
    shop.tell(Working(what=None))
    final = planner.state
    touched = {
        (change.after.name, change.after.version): change.download or 0
        for step in steps
        for change in step.changes
        if change.after is not None
    }
    findings = (
        *planner.timeline.findings,
        *host_findings(shop, work),
        *index_findings(work, planner.artefacts.values()),
    )
    if machine is not None:
        findings = (*findings, *gpu_findings(profile, machine, Severity.WARNING))
    everything = [finding for _, found in planner.timeline.judged for finding in found]
    return Plan(
        profile=profile,
        steps=tuple(steps),
        base=base,
        findings=tuple(findings),
        verdicts=planner.timeline.verdicts(),
        download=sum(touched.values()) + sum(to_fetch(work, item) or 0 for item in packages(base).values()),
        disk=sum(_unpacked(work, item) for item in final.values()),
        free=machine.disk_free if machine and machine.disk_free else shutil.disk_usage(work.cache).free,
        python=work.python,
        notes=constrain_would_help(everything, planner.helped),
        lost=lost_builds(work, profile, final.values()),
        python_version=work.facts.version,
        cards=fitting(profile, machine) if machine is not None and profile.gpu is not None else (),
    )


def _adopted(shop: Shop, planner: Planner, step: Step, state: State) -> StepPlan | None:
    """The step as the lock has it; None, and told, where a file of the lock is out of reach now."""
    try:
        return planner.adopt(step, state)
    except EnvforgeError as error:
        shop.tell(Note(text=f"`{step.name}` is resolved anew: {error.message}", level="warning"))
        return None


def _unpacked(work: Bench, item: Distribution) -> int:
    known = work.known.size(item.sha256) if item.sha256 else None
    return known if known is not None else int((item.size or 0) * _UNPACKED)


def lost_builds(work: Bench, profile: Profile, installed: Iterable[Distribution]) -> Mapping[str, str]:
    """What a substitute costs: distribution -> sentence, where the index's own builds carry a local version."""
    lost = {}
    for index in profile.indexes:
        build = re.search(r"/(cu\d+|cpu|xpu|rocm[\d.]+)/?$", index.url or "")
        origin = work.routes.origins[work.routes.of_index[index.name]]
        if build is None or origin.name == index.name:
            continue
        for item in installed:
            if origin.key in work.routes.allowed(item.name, (index.name,)) and "+" not in item.version and item.file:
                lost[item.name] = (
                    f"{item.version} from `{origin.name}` instead of {item.version}+{build[1]} from `{index.name}`"
                )
    return lost


def host_findings(shop: Shop, work: Bench) -> tuple[Finding, ...]:
    """What the host's configuration would have done, and was kept out."""
    allowed = shop.settings.allow_ambient
    found = [
        Finding(
            id="ambient-config",
            severity=Severity.INFO,
            subject=item.tool,
            message=f"{item.source} sets {', '.join(item.settings) or 'nothing known'}; "
            + ("it is let in, as `allow_ambient` says" if item.tool in allowed else "it was kept out of the build"),
            evidence={"source": item.source, "settings": list(item.settings)},
            remedy=None if item.tool in allowed else f"if a build needs it, say so: `allow_ambient: [{item.tool}]`",
        )
        for item in ambient.look()
        if item.tool in {"pip", "uv", "conda", "python"}
    ]
    found += [
        Finding(
            id="proxy-scheme",
            severity=Severity.INFO,
            subject=name,
            message=f"${name} says `socks://`, which most libraries refuse; engines get `socks5://`",
            remedy="write `socks5://` in it yourself",
        )
        for name in work.proxies.rewritten
    ]
    return tuple(found)


def index_findings(work: Bench, artefacts: Iterable[Artefact]) -> tuple[Finding, ...]:
    """Mirrors that lack a file which the plan needs."""
    return tuple(
        Finding(
            id="index-missing",
            severity=Severity.ERROR if lag.served_by is None else Severity.WARNING,
            subject=lag.name,
            message=f"a mirror of `{lag.index}` lacks `{lag.file}`"
            + ("" if lag.served_by else ", and no other source has it"),
            evidence={"index": lag.index, "file": lag.file, "mirror": lag.mirror, "served_by": lag.served_by},
            remedy="wait until the mirror has caught up, or put `origin` at its end in `mirrors`"
            if lag.served_by is None
            else "nothing: the file comes from the next source",
        )
        for artefact in artefacts
        for lag in work.router.lags(artefact)
    )


def fitting(profile: Profile, machine: Machine) -> tuple[str, ...]:
    """The machine's cards that the profile is for."""
    cards = (fit.card for fit in matching.fits(profile, machine).cards if fit.fits)
    return tuple(f"GPU {card.index} {card.name}" for card in cards)


def gpu_findings(profile: Profile, machine: Machine, severity: Severity) -> tuple[Finding, ...]:
    """A machine whose cards do not fit the profile."""
    if profile.gpu is None:
        return ()
    fit = matching.fits(profile, machine)
    if fit.fits:
        return ()
    return (
        Finding(
            id="gpu-mismatch",
            severity=severity,
            subject=profile.name,
            message=f"`{machine.hostname}` does not fit: {'; '.join(fit.reasons)}",
            remedy="see `envforge profiles` for those that fit; `create --any-machine` builds it for another machine",
        ),
    )
