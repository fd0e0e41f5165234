"""What a step's resolution is held to: its own constraints, those of guards, and for a backfill all that is there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envforge.model.errors import EnvforgeError
from envforge.model.profile import Action, Guard, Hold, Keep, Profile, Step
from envforge.model.state import State, distributions
from envforge.rules.context import matches
from envforge.rules.wording import guard_text


def constraints(profile: Profile, step: Step, state: State, requirements: tuple[str, ...]) -> tuple[str, ...]:
    """Requirement lines; ``state``: what is installed, ``requirements``: what the step asks for."""
    lines = [*step.constraints, *held(profile, step).values()]
    exact = set()
    for guard in profile.guards:
        if isinstance(guard, Keep) and guard.constrain:
            exact |= {
                name for name in distributions(state) if matches(name, guard.names) and not matches(name, step.allow)
            }
    if step.action is Action.BACKFILL:
        listed = {canonicalize_name(requirement_name(line)) for line in requirements}
        exact |= distributions(state).keys() - listed
    return (*lines, *(f"{name}=={state[name].version}" for name in sorted(exact)))


def held(profile: Profile, step: Step) -> dict[str, str]:
    """Canonical name -> requirement line, for the holds that the resolver is given."""
    held: dict[str, str] = {}
    for guard in profile.guards:
        if isinstance(guard, Hold) and guard.constrain:
            requirement = Requirement(guard.requirement)
            name = canonicalize_name(requirement.name)
            if not matches(name, step.allow):
                marker = f" ; {requirement.marker}" if requirement.marker else ""
                held[name] = f"{name}{requirement.specifier}{marker}"
    return held


def guards_in_the_way(profile: Profile, step: Step, state: State, error: EnvforgeError) -> str | None:
    """Which of the constraints that the resolver names come from guards; None where it names none of them."""
    given: dict[str, str] = {}
    for guard in profile.guards:
        if isinstance(guard, Hold) and guard.constrain:
            given[canonicalize_name(Requirement(guard.requirement).name)] = guard_text(guard)
        elif isinstance(guard, Keep) and guard.constrain:
            given |= {name: guard_text(guard) for name in distributions(state) if matches(name, guard.names)}
    lines = (Requirement(line) for line in constraints(profile, step, state, ()) if error.code == "unsolvable")
    told = [
        f"`{line.name}{line.specifier}` comes from the guard `{given[line.name]}`"
        + ("" if step.action is Action.BACKFILL else f"; `allow: [{line.name}]` on the step lets it change")
        for line in lines
        if line.name in given and re.search(rf"\b{re.escape(line.name)}(?![\w-])", error.cause or "")
    ]
    return "; ".join(dict.fromkeys(told)) or None


def bounds(guard: Guard, before: State, chosen: Mapping[str, str], allow: tuple[str, ...]) -> tuple[str, ...]:
    """The constraints that would have kept ``guard`` from opening by ``chosen``; none where it does not open."""
    if isinstance(guard, Hold) and not guard.constrain:
        requirement = Requirement(guard.requirement)
        version = chosen.get(canonicalize_name(requirement.name))
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            return (f"{requirement.name}{requirement.specifier}",)
    if isinstance(guard, Keep) and not guard.constrain:
        names = [name for name in chosen if name in before and matches(name, guard.names) and not matches(name, allow)]
        return tuple(f"{name}=={before[name].version}" for name in names)
    return ()


def requirement_name(line: str) -> str:
    """The name in a requirement line; the line itself where it is none."""
    try:
        return Requirement(line).name
    except InvalidRequirement:
        return line
