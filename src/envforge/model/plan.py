"""A plan is a value: what every step would change, with the verdict of every guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .finding import Finding
from .profile import Profile, Step
from .state import Distribution, State, packages, shown


class Verdict(StrEnum):
    HOLDS = "holds"
    OPEN = "open"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """Who forced a change. ``distribution`` is None where the step itself (or a guard) asked.

    ``requirement`` is the Requires-Dist line or the step's requirement; ``via``: the chain from a requirement of
    the step down to ``distribution``, canonical names. ``guard``: a guard gave ``requirement`` as a constraint.
    """

    requirement: str
    distribution: str | None = None
    version: str | None = None
    via: tuple[str, ...] = ()
    guard: bool = False

    def __str__(self) -> str:
        if self.guard:
            return f"a guard constrains it to {self.requirement}"
        if self.distribution is None:
            return f"the step asks for {self.requirement}"
        return f"{self.distribution} {self.version} requires {self.requirement}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``before`` None = added, ``after`` None = removed. ``download``: bytes still to fetch (0 when cached)."""

    name: str
    before: Distribution | None
    after: Distribution | None
    because: Because | None = None
    download: int | None = None

    @property
    def label(self) -> str:
        """What people call it."""
        return shown(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """``opens``: findings new after this step; ``heals``: findings of before that are gone; ``assumed``: an earlier
    step of kind run may have changed what this one starts from; ``builds``: sdists whose code had to run, by file;
    ``state``: what is installed after the step.
    """

    step: Step
    changes: tuple[Change, ...]
    state: State
    opens: tuple[Finding, ...] = ()
    heals: tuple[Finding, ...] = ()
    assumed: bool = False
    builds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardVerdict:
    """``guard`` is a short text (``keep torch``, ``one CUDA major``); ``opened`` and ``healed`` name steps."""

    guard: str
    verdict: Verdict
    because: str | None = None
    opened: str | None = None
    healed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``findings``: those still there at the end, and what concerns no single step (ambient configuration, mirrors).

    ``download``: bytes to fetch; ``disk``: bytes that the environment needs; ``free``: bytes free where it goes.
    ``python``: path of the interpreter, None where it is not on this machine; ``python_version``: in full.
    ``cards``: those of the machine that the profile fits, in words.
    """

    profile: Profile
    steps: tuple[StepPlan, ...]
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[GuardVerdict, ...] = ()
    download: int = 0
    disk: int = 0
    free: int = 0
    python: str | None = None
    notes: tuple[str, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)
    base: State = field(default_factory=dict)
    python_version: str | None = None
    cards: tuple[str, ...] = ()

    @property
    def founded(self) -> tuple[Change, ...]:
        """The conda packages that are there before the first step."""
        return tuple(Change(name=name, before=None, after=item) for name, item in packages(self.base).items())
