"""Environments in a few words, for the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envforge.model.finding import Finding
from envforge.model.native import Compiled, Native
from envforge.model.profile import Action, Guard, Profile, Step
from envforge.model.state import Distribution, Observation, State
from envforge.rules.context import Context, Moment
from envforge.rules.judge import judge

MARKERS = {
    "implementation_name": "cpython",
    "implementation_version": "3.10.13",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1",
    "platform_system": "Linux",
    "platform_version": "1",
    "python_full_version": "3.10.13",
    "python_version": "3.10",
    "sys_platform": "linux",
}


def dist(text: str, *requires: str, **more: Any) -> Distribution:
    """``torch 2.7.1``: from `pypi`, with a hash that follows from name, version and index."""
    name, version = text.split()
    index = more.pop("index", "pypi")
    known = {"sha256": f"{name} {version} {index}", "index": index} | more
    return Distribution(name=name, version=version, requires=requires, **known)


def state(*distributions: Distribution) -> State:
    return {each.name: each for each in distributions}


def step(name: str, action: Action, *arguments: str, **more: Any) -> Step:
    return Step(name=name, action=action, arguments=arguments, **more)


def install(name: str, *arguments: str, **more: Any) -> Step:
    return step(name, Action.INSTALL, *arguments, **more)


def profile(*guards: Guard, **more: Any) -> Profile:
    return Profile(name="demo", source="demo.yaml", text="", guards=guards, **more)


def context(
    about: Profile,
    *moments: tuple[Step | None, State],
    observation: Observation | None = None,
    substitutes: Mapping[str, str] | None = None,
    native: Native | None = None,
    cards: tuple[str, ...] = (),
    wheels: Mapping[str, tuple[Compiled, ...]] | None = None,
) -> Context:
    """The moments of a story; the first is an empty environment unless one with step None is given."""
    told = list(moments)
    if not told or told[0][0] is not None:
        told.insert(0, (None, {}))
    made = [Moment(step=each, state=installed) for each, installed in told]
    made[-1] = Moment(step=made[-1].step, state=made[-1].state, observation=observation, native=native)
    return Context(
        profile=about, moments=tuple(made), markers=MARKERS, substitutes=substitutes or {}, cards=cards,
        wheels=wheels or {},
    )  # fmt: skip


def found(about: Context, id_: str | None = None) -> tuple[Finding, ...]:
    return tuple(each for each in judge(about) if id_ is None or each.id == id_)
