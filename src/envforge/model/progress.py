"""What a use case tells while it works; a renderer decides how it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .finding import Finding
from .plan import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A line for the user. ``level``: info, warning, verbose (shown with --verbose only)."""

    text: str
    level: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """The one live line: what is being done now; ``done`` and ``total`` in bytes where known, None to end it."""

    what: str | None
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """A finished step of a build. ``position`` counts from 1 of ``count``; ``seconds`` wall time."""

    name: str
    action: str
    position: int
    count: int
    seconds: float
    changes: tuple[Change, ...] = ()
    opens: tuple[Finding, ...] = ()
    heals: tuple[Finding, ...] = ()
    differs: tuple[str, ...] = field(default=())


Progress = Note | Working | StepDone
Listener = Callable[[Progress], None]
