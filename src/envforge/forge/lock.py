"""`lock`: what an environment was built from, or what a plan comes to, as one file that `create --lock` builds from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envforge.engines.origins import routes
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import brought, built, installable
from envforge.model.finding import Finding, Severity
from envforge.model.lock import LockedStep, LockFile
from envforge.model.plan import Plan
from envforge.model.profile import Action, Profile
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.state import Distribution, State
from envforge.model.views import LockView
from envforge.store import lockfile, snapshots

from . import profiles, restoring
from .bench import Bench, bench, default_index
from .ground import ground
from .path import in_use
from .plan import first_planner, predict
from .planner import Planner
from .shop import Shop
from .writing import write

STDOUT = "-"


def lock(shop: Shop, name: str, *, output: str | None = None) -> Result[LockView]:
    """The lock of the environment ``name``, or else of the profile that ``name`` means.

    ``output``: the file, ``-`` for none; ``NAME.pylock.toml`` in the working folder where None. Nothing is installed.
    Where the plan of a profile ends open, nothing is written, and the findings say why.
    Raises UsageError, EnvforgeError ``not-restorable``, ``lock-needs-build``, ``not-writable``, and as a plan does.
    """
    if "/" not in name and name in shop.home.environments():
        return _answer(shop, *recorded(shop, name), (), output=output)
    try:
        profile = profiles.find(shop, name)
    except UsageError as error:
        if error.code == "unknown-profile" and "/" not in name:
            error.message += ", and no environment either"
        raise
    return _answer(shop, *_planned(shop, profile), output=output)


def _answer(
    shop: Shop,
    subject: str,
    held: LockFile | None,
    indexes: Mapping[str, str],
    findings: tuple[Finding, ...],
    *,
    output: str | None,
) -> Result[LockView]:
    if held is None:
        empty = LockView(subject=subject, file=None, steps=(), distributions=0, lost=(), text="")
        return Result(command="lock", data=empty, findings=findings)
    text = lockfile.dump(held, indexes=indexes)
    lost = tuple(lost_in(held))
    for each in lost:
        shop.tell(Note(text=each, level="warning"))
    file = None if output == STDOUT else write(Path(output or f"{held.name}.pylock.toml"), text)
    final: State = held.steps[-1].state if held.steps else {}
    return Result(
        command="lock",
        data=LockView(
            subject=subject,
            file=file,
            steps=tuple(step.name for step in held.steps),
            distributions=sum(installable(item) for item in final.values()),
            lost=lost,
            text=text,
        ),
        findings=findings,
    )


def lost_in(held: LockFile) -> list[str]:
    """What the lock cannot carry."""
    lost = []
    # A step before the end may need one, too.
    wheels = sorted({f"`{item.file}`" for step in held.steps for item in step.state.values() if built(item)})
    if wheels:
        lost.append(f"no index has what was built here: elsewhere, lay {', '.join(wheels)} beside the lock")
    return [*lost, *unknown(held)]


def unknown(held: LockFile) -> list[str]:
    """What no file is known of."""
    final: State = held.steps[-1].state if held.steps else {}
    others = (item for item in final.values() if not installable(item) and not brought(item))
    names = sorted(f"`{item.name}` {item.version}" for item in others)
    return [f"no lock knows the file of what a program put there: {', '.join(names)}"] if names else []


# -- an environment ----------------------------------------------------------------------------------------------------


def recorded(shop: Shop, name: str) -> tuple[str, LockFile, Mapping[str, str]]:
    """The snapshot that the generation in use ends with (``ENV/G.K``), its lock, and name -> URL of its indexes.

    Raises UsageError, EnvforgeError ``not-restorable`` or ``corrupt-record``.
    """
    number = in_use(shop.home, name)
    held = restoring.lock(shop, name, number)
    last = max(snapshots.numbers(shop.home, name, number))
    if last > len(held.states):
        text = f"what was accepted since ({name}/{number}.{last}) is not in the lock: no step made it"
        shop.tell(Note(text=text, level="warning"))
    return (
        f"{name}/{number}.{len(held.states)}",
        _file(name, held.profile, held.states, held.python, held.substitutes),
        addresses(shop, held.profile, held.substitutes),
    )


def addresses(shop: Shop, profile: Profile, substitutes: Mapping[str, str]) -> Mapping[str, str]:
    """Name -> URL of every index that the profile uses, under these substitutes."""
    settings = replace(shop.settings, substitutes=substitutes)
    ways = routes(profile, settings, default_index(settings, profile, settings.cache))
    return {origin.name: origin.url for origin in ways.origins.values()}


def _file(
    name: str, profile: Profile, states: tuple[State, ...], python: str, substitutes: Mapping[str, str]
) -> LockFile:
    return LockFile(
        name=name,
        text=profile.text,
        python=python,
        steps=tuple(LockedStep(name=step.name, state=state) for step, state in zip(profile.steps, states, strict=True)),
        substitutes=substitutes,
    )


# -- a profile ---------------------------------------------------------------------------------------------------------


def _planned(shop: Shop, profile: Profile) -> tuple[str, LockFile | None, Mapping[str, str], tuple[Finding, ...]]:
    with ground(shop, profile) as under, bench(shop, profile, under) as work:
        planner = first_planner(shop, work, profile, under, no_build=False)
        predicted = predict(shop, work, profile, planner)
        built = sorted({file for step in predicted.steps for file in step.builds})
        if built:
            shop.tell(Note(text=f"built, to know what they require: {', '.join(f'`{file}`' for file in built)}"))
        if any(finding.severity is Severity.ERROR for finding in predicted.findings):
            return profile.name, None, {}, predicted.findings
        states = _states(shop, work, planner, predicted)
        indexes = {origin.name: origin.url for origin in work.routes.origins.values()}
    runs = ", ".join(f"`{step.name}`" for step in profile.steps if step.action is Action.RUN)
    if runs:
        shop.tell(Note(text=f"taken to change nothing, since a lock runs nothing: {runs}", level="warning"))
    held = _file(profile.name, profile, states, under.facts.version, shop.settings.substitutes)
    return profile.name, held, indexes, predicted.findings


def _states(shop: Shop, work: Bench, planner: Planner, predicted: Plan) -> tuple[State, ...]:
    """What the plan has after each step, with the hash of every file. Raises EnvforgeError ``lock-needs-build``."""
    unbuilt = sorted(
        {
            (artefact.sdist or artefact).file
            for artefact in planner.artefacts.values()
            if not artefact.wheel or artefact.sdist is not None
        }
    )
    if unbuilt:
        raise EnvforgeError(
            "lock-needs-build",
            f"{', '.join(f'`{file}`' for file in unbuilt)} must be built before the lock can name what comes of it",
            cause="two builds of one sdist give different wheels, and a lock holds one",
            hint=f"`envforge create {predicted.profile.name}` builds it once; then lock the environment or the profile",
        )
    shop.tell(Working(what="hashing what no index gives the hash of"))
    now: dict[str, Distribution] = dict(predicted.base)
    states = []
    for step in predicted.steps:
        for change in step.changes:
            if change.after is None:
                del now[change.name]
                continue
            artefact = planner.artefacts.get((step.step.name, change.name))
            if artefact is None:
                continue
            whole = work.router.hashed(artefact)
            now[change.name] = replace(change.after, sha256=whole.sha256, size=whole.size)
        states.append(dict(now))
    shop.tell(Working(what=None))
    return tuple(states)
