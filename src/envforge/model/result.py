"""What a use case returns, and what a build came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from .finding import Finding, Severity
from .plan import Plan
from .progress import StepDone
from .smoked import SmokeResult
from .views import Activation

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T_co]):
    """``data`` is the command's own value; the exit status follows from the findings."""

    command: str
    data: T_co
    findings: tuple[Finding, ...] = ()

    @property
    def exit(self) -> int:
        """3 if a finding of severity error stands, else 0."""
        return 3 if any(finding.severity is Severity.ERROR for finding in self.findings) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What ``create`` and ``update`` did.

    ``switched``: the environment now is this generation. ``continued``: the step after which an interrupted build was
    taken up again, None for a clean start. ``differs``: where the build differs from the plan. ``prefix``: real path.
    ``in_use``: the generation that now is in use, None where none is. ``activation``: None for what is no environment
    of conda's, or is not in use.
    """

    plan: Plan
    environment: str
    generation: int
    prefix: str
    switched: bool
    continued: str | None
    steps: tuple[StepDone, ...]
    smoke: tuple[SmokeResult, ...]
    differs: tuple[str, ...]
    files: int
    bytes: int
    seconds: float
    in_use: int | None = None
    activation: Activation | None = None
