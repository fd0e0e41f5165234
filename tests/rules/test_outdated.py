"""A lock satisfies a profile by what it holds after each step, whatever the profile's text was then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from envforge.model.lock import LockedStep
from envforge.model.profile import Action, Backend, Conda, Forbid, Guard, Hold, Ignore, Index, Keep, Profile, Step
from envforge.model.state import Distribution, Origin, State
from envforge.rules.outdated import outdated

MARKERS = {"python_version": "3.11", "sys_platform": "linux", "python_full_version": "3.11.7"}


def dist(name: str, version: str, index: str = "pypi") -> Distribution:
    return Distribution(name=name, version=version, index=index, sha256=version.replace(".", "") * 32, file="x.whl")


def step(name: str, action: Action, *arguments: str, **more: object) -> Step:
    return Step(name=name, action=action, arguments=arguments, **more)  # type: ignore[arg-type]


def locked(name: str, *dists: Distribution) -> LockedStep:
    return LockedStep(name=name, state={each.name: each for each in dists})


BASE = step("base", Action.INSTALL, "six<2")
NEXT = step("next", Action.INSTALL, "idna")
HELD = (locked("base", dist("six", "1.0")), locked("next", dist("six", "1.0"), dist("idna", "3.0")))


def reasons(
    *steps: Step,
    guards: tuple[Guard, ...] = (),
    held: tuple[LockedStep, ...] = HELD,
    base: State = {},  # noqa: B006 - never written
    unmatched: Mapping[str | None, Sequence[str]] = {},
    **more: object,
) -> str:
    profile = Profile(name="demo", source="", text="", steps=steps, guards=guards, **more)  # type: ignore[arg-type]
    before = Profile(name="demo", source="", text="", steps=(BASE, NEXT))
    return "\n".join(
        outdated(profile, held, before=before, markers=MARKERS, substitutes={}, base=base, unmatched=unmatched)
    )


def test_another_text_that_the_lock_satisfies_is_no_reason() -> None:
    wider = step("base", Action.INSTALL, "six>=1", "gone; python_version < '3'")
    assert not reasons(wider, NEXT, guards=(Hold(requirement="idna<4"),), summary="other", environment={"A": "b"})


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((BASE,), "the lock has the step `next`, the profile does not"),
        ((BASE, NEXT, step("more", Action.INSTALL)), "the profile has the step `more`, the lock does not"),
        ((NEXT, BASE), "in another order: `base`, `next`"),
        ((step("base", Action.INSTALL, "six<1"), NEXT), "holds `six` 1.0, and the step asks for `six<1`"),
        ((step("base", Action.INSTALL, "idna"), NEXT), "after the step `base` the lock holds no `idna`"),
        ((BASE, step("next", Action.UNINSTALL, "six")), "holds `six`, which the step uninstalls"),
        (
            (BASE, step("next", Action.INSTALL, "idna", constraints=("idna<3",))),
            "holds `idna` 3.0, and the step is constrained to `idna<3`",
        ),
        ((BASE, step("next", Action.INSTALL, "idna @ https://example.org/i.whl")), "the lock was made for `idna`"),
        ((BASE, step("next", Action.INSTALL, "idna", indexes=("other",))), "came from `pypi`"),
    ],
)
def test_a_step_that_asks_for_something_else(steps: tuple[Step, ...], said: str) -> None:
    indexes = (Index(name="pypi"), Index(name="other", url="https://example.org"))
    assert said in reasons(*steps, indexes=indexes)


def test_a_constraint_says_nothing_of_what_the_step_left_alone() -> None:
    assert not reasons(BASE, step("next", Action.INSTALL, "idna", constraints=("six>=2",)))


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (Hold(requirement="six>=2"), "`six` 1.0 violates `six>=2`"),
        (Forbid(patterns=("id*",)), "is forbidden"),
    ],
)
def test_a_guard_that_would_be_open_at_the_end(guard: Guard, said: str) -> None:
    assert said in reasons(BASE, NEXT, guards=(guard,))


def test_a_kept_build_that_a_later_step_replaced() -> None:
    held = (HELD[0], locked("next", dist("six", "1.1"), dist("idna", "3.0")))
    assert "six" in reasons(BASE, NEXT, guards=(Keep(names=("six",)),), held=held)


def test_an_index_that_the_profile_does_not_allow() -> None:
    indexes = (Index(name="other", url="https://example.org", packages=("six",)), Index(name="pypi"))
    assert "`six` 1.0 came from `pypi`" in reasons(BASE, NEXT, indexes=indexes)


def test_what_the_profile_ignores_is_no_reason() -> None:
    assert not reasons(BASE, NEXT, guards=(Hold(requirement="six>=2"),), ignore=(Ignore(id="hold-violated"),))


# -- conda -------------------------------------------------------------------------------------------------------------

PACKAGE = Distribution(name="conda:tool", version="1.0", build="h_0", index="forge", sha256="a" * 64)
BROUGHT = Distribution(name="hello", version="1.0", origin=Origin(kind="conda", package="hello"))
CONDA_BASE: State = {"conda:tool": PACKAGE, "hello": BROUGHT}
OVER = tuple(LockedStep(name=step.name, state={**CONDA_BASE, **step.state}) for step in HELD)
FORGE = Conda(channels=("forge",))


def test_what_a_conda_package_brings_satisfies_a_step() -> None:
    asks = step("next", Action.INSTALL, "idna", "hello>=1", constraints=("hello>=2",))
    assert not reasons(BASE, asks, held=OVER, base=CONDA_BASE, backend=Backend.CONDA, conda=FORGE)


@pytest.mark.parametrize(
    ("backend", "base", "said"),
    [
        (Backend.VENV, CONDA_BASE, "the lock holds conda packages, and the profile has the backend `venv`"),
        (Backend.CONDA, {}, "the lock holds no conda packages, and the profile has the backend `conda`"),
    ],
)
def test_the_other_backend_is_the_only_reason(backend: Backend, base: State, said: str) -> None:
    assert reasons(NEXT, held=OVER, base=base, backend=backend) == said


def test_a_spec_is_told_where_it_first_fails() -> None:
    told = reasons(
        BASE, NEXT, held=OVER, base=CONDA_BASE, backend=Backend.CONDA, conda=Conda(channels=("other",)),
        unmatched={None: ["tool >=2", "gone"], "next": ["tool >=2", "forge::tool 2"]},
    )  # fmt: skip
    assert told.splitlines() == [
        "before the first step the lock holds `tool` 1.0 h_0, and the profile asks for `tool >=2`",
        "before the first step the lock holds no `gone`, and the profile asks for `gone`",
        "after the step `next` the lock holds `tool` 1.0 h_0, and the profile asks for `forge::tool 2`",
        "`tool` comes from the channel `forge`, which the profile does not name",
    ]
