"""Whether a lock still satisfies a profile: judged by what it holds after each step, not by how the text compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from envforge.model.finding import Severity
from envforge.model.lock import LockedStep
from envforge.model.profile import DEFAULT_CHANNEL, Action, Backend, Profile, Step
from envforge.model.repodata import spec_name
from envforge.model.state import State, package_key, packages, shown

from .context import REQUIRING, Context, Moment
from .diff import changes
from .judge import judge
from .requirements import Wanted, accepts, applies, parse


def outdated(
    profile: Profile,
    locked: Sequence[LockedStep],
    *,
    before: Profile,
    markers: Mapping[str, str],
    substitutes: Mapping[str, str],
    base: State,
    unmatched: Mapping[str | None, Sequence[str]],
) -> tuple[str, ...]:
    """Why what is ``locked`` is not what ``profile`` asks for, in sentences; empty where it is.

    ``before``: the profile that the lock was made from; ``base``: what the lock has before the first step.
    ``unmatched``: name of a step of kind conda, None = before the first -> the match specs of the profile that no
    package is which the lock has then. What only METADATA tells (the requirements of what is installed) is not judged.
    """
    reasons = [*_backend(profile, base)] or [*_steps(profile, locked)]
    if reasons:
        return tuple(reasons)
    reasons += _conda(profile, locked, base, unmatched)
    then = {step.name: step for step in before.steps}
    earlier: State = base
    for step, held in zip(profile.steps, locked, strict=True):
        reasons += _step(step, then.get(step.name, step), earlier, held.state, markers)
        earlier = held.state
    return (*dict.fromkeys(reasons), *_guards(profile, locked, base, markers, substitutes))


def _backend(profile: Profile, base: State) -> Iterator[str]:
    if base and profile.backend is Backend.VENV:
        yield "the lock holds conda packages, and the profile has the backend `venv`"
    elif not base and profile.backend is Backend.CONDA:
        yield "the lock holds no conda packages, and the profile has the backend `conda`"


def _conda(
    profile: Profile, locked: Sequence[LockedStep], base: State, unmatched: Mapping[str | None, Sequence[str]]
) -> Iterator[str]:
    states: dict[str | None, State] = {None: base, **{step.name: step.state for step in locked}}
    told: set[str] = set()
    for name, specs in unmatched.items():
        where = "before the first step" if name is None else f"after the step `{name}`"
        for spec in [each for each in specs if each not in told]:
            found = states[name].get(package_key(spec_name(spec)))
            holds = f"`{shown(found.name)}` {found.version} {found.build}" if found else f"no `{spec_name(spec)}`"
            yield f"{where} the lock holds {holds}, and the profile asks for `{spec}`"
        told.update(specs)
    channels = profile.conda.channels or (DEFAULT_CHANNEL,)
    for item in (item for state in states.values() for item in packages(state).values()):
        if item.index is not None and item.index not in channels:
            yield f"`{shown(item.name)}` comes from the channel `{item.index}`, which the profile does not name"


def _steps(profile: Profile, locked: Sequence[LockedStep]) -> Iterator[str]:
    wanted, there = [step.name for step in profile.steps], [step.name for step in locked]
    yield from (f"the profile has the step `{name}`, the lock does not" for name in wanted if name not in there)
    yield from (f"the lock has the step `{name}`, the profile does not" for name in there if name not in wanted)
    if sorted(wanted) == sorted(there) and wanted != there:
        yield f"the lock has the steps in another order: {', '.join(f'`{name}`' for name in there)}"


def _step(step: Step, then: Step, earlier: State, state: State, markers: Mapping[str, str]) -> Iterator[str]:
    where = f"after the step `{step.name}` the lock holds"
    if step.action is Action.UNINSTALL:
        yield from (f"{where} `{name}`, which the step uninstalls" for name in step.arguments if name in state)
    if step.action not in REQUIRING:
        return
    for line in step.arguments:
        wanted = parse(line)
        if wanted is None or not applies(wanted, markers):
            continue
        found = state.get(wanted.name)
        if found is None:
            yield f"{where} no `{wanted.name}`, and the step asks for `{wanted.text}`"
        elif "@" in wanted.text:
            yield from _source(step, wanted, then)
        elif not accepts(wanted.bounds, found.version):
            yield f"{where} `{found.name}` {found.version}, and the step asks for `{wanted.text}`"
    changed = {change.name for change in changes(earlier, state)}
    for line in step.constraints:
        wanted = parse(line)
        found = state.get(wanted.name) if wanted is not None else None
        if wanted is None or found is None or found.name not in changed or not applies(wanted, markers):
            continue
        if not accepts(wanted.bounds, found.version):
            yield f"{where} `{found.name}` {found.version}, and the step is constrained to `{wanted.text}`"


def _source(step: Step, wanted: Wanted, then: Step) -> Iterator[str]:
    """A Git commit, a path or a URL: what was locked came from the one that the step named then."""
    named = {other.name: other.text for other in map(parse, then.arguments) if other is not None}
    if named.get(wanted.name) != wanted.text:
        yield f"the step `{step.name}` asks for `{wanted.text}`, and the lock was made for `{named.get(wanted.name)}`"


def _guards(
    profile: Profile,
    locked: Sequence[LockedStep],
    base: State,
    markers: Mapping[str, str],
    substitutes: Mapping[str, str],
) -> Iterator[str]:
    """What stands against the end of the lock, as every rule says that needs no METADATA."""
    moments = [Moment(step=None, state=base)]
    for step, held in zip(profile.steps, locked, strict=True):
        moments.append(Moment(step=step, state={name: replace(item, requires=()) for name, item in held.state.items()}))
    context = Context(profile=profile, moments=tuple(moments), markers=markers, substitutes=substitutes)
    for finding in judge(context):
        if finding.severity is Severity.ERROR:
            yield finding.message
