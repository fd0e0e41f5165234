"""`lock`: what an environment was built from, or what a plan comes to, as one file that `create --lock` builds from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envforge.engines.origins import routes
from envforge.model import explicit
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import built, installable, unlockable
from envforge.model.finding import Finding, Severity
from envforge.model.lock import LockedStep, LockFile
from envforge.model.plan import Plan
from envforge.model.profile import Action, Backend, Profile
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.state import Distribution, State, is_package, packages, shown
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
_ENDING = ".pylock.toml"


def lock(shop: Shop, name: str, *, output: str | None = None) -> Result[LockView]:
    """The lock of the environment ``name``, or else of the profile that ``name`` means.

    ``output``: the file, ``-`` for none; ``NAME.pylock.toml`` in the working folder where None. Beside it its conda
    packages are listed as conda takes them. Nothing is installed. Where the plan of a profile ends open, nothing is
    written, and the findings say why.
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
        empty = LockView(subject=subject, file=None, explicit=None, steps=(), distributions=0, lost=(), text="")
        return Result(command="lock", data=empty, findings=findings)
    insist_on_hashes(held)
    text = lockfile.dump(held, indexes=indexes)
    lost = tuple(lost_in(held))
    for each in lost:
        shop.tell(Note(text=each, level="warning"))
    file = None if output == STDOUT else write(Path(output or f"{held.name}{_ENDING}"), text)
    return Result(
        command="lock",
        data=LockView(
            subject=subject,
            file=file,
            explicit=_explicit(subject, held, Path(file)) if file is not None and held.base else None,
            steps=tuple(step.name for step in held.steps),
            distributions=sum(installable(item) or is_package(item.name) for item in held.final.values()),
            lost=lost,
            text=text,
        ),
        findings=findings,
    )


def insist_on_hashes(held: LockFile) -> None:
    """Raise EnvforgeError ``not-restorable`` where a channel states no sha256 of a package."""
    every = {item.name: item for step in held.steps for item in step.state.values()} | dict(held.base)
    bare = sorted(f"`{shown(item.name)}` {item.version}" for item in packages(every).values() if item.sha256 is None)
    if bare:
        raise EnvforgeError(
            "not-restorable",
            f"{', '.join(bare)} cannot be locked: the channel states no sha256",
            cause="a lock names every file by its sha256",
            hint="take the package from another channel",
        )


def _explicit(subject: str, held: LockFile, file: Path) -> str:
    """Write the conda packages of the end beside ``file``, as conda itself takes them."""
    name = file.name.removesuffix(_ENDING) if file.name.endswith(_ENDING) else file.stem
    head = f"{subject}, as envforge locked it: the conda packages\nconda create --name NAME --file FILE"
    return write(file.with_name(f"{name}.explicit.txt"), explicit.render(held.final, head))


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
    names = sorted(f"`{item.name}` {item.version}" for item in held.final.values() if unlockable(item))
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
        _file(
            name,
            held.profile,
            base=held.base or {},
            states=held.states,
            python=held.python,
            substitutes=held.substitutes,
        ),
        addresses(shop, held.profile, held.substitutes),
    )


def addresses(shop: Shop, profile: Profile, substitutes: Mapping[str, str]) -> Mapping[str, str]:
    """Name -> URL of every index that the profile uses, under these substitutes."""
    settings = replace(shop.settings, substitutes=substitutes)
    ways = routes(profile, settings, default_index(settings, profile, settings.cache))
    return {origin.name: origin.url for origin in ways.origins.values()}


def _file(
    name: str, profile: Profile, *, base: State, states: tuple[State, ...], python: str, substitutes: Mapping[str, str]
) -> LockFile:
    return LockFile(
        name=name,
        text=profile.text,
        python=python,
        base=base,
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
    # Another Python brings its own pip, and a venv holds nothing else before the first step.
    base: State = predicted.base if profile.backend is Backend.CONDA else {}
    held = _file(
        profile.name, profile, base=base, states=states, python=under.facts.version,
        substitutes=shop.settings.substitutes,
    )  # fmt: skip
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
    hashed: dict[str, Distribution] = {}
    states = []
    for step in predicted.steps:
        for change in step.changes:
            hashed.pop(change.name, None)
            artefact = planner.artefacts.get((step.step.name, change.name))
            if change.after is not None and artefact is not None:
                whole = work.router.hashed(artefact)
                hashed[change.name] = replace(change.after, sha256=whole.sha256, size=whole.size)
        states.append({**step.state, **hashed})
    shop.tell(Working(what=None))
    return tuple(states)
