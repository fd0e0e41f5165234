"""What was locked or exported as text for a person."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.views import ExportView, LockView

from . import words


def lock(value: LockView, *, verbose: bool) -> list[RenderableType]:
    """Where the lock is, and what it holds."""
    del verbose
    if not value.text:
        return [Text.assemble((value.subject, "bold"), (" is not locked", "bold red"), ", since its plan ends open")]
    what = f"{words.count(value.distributions, 'distribution')} after {words.count(len(value.steps), 'step')}"
    return [Text.assemble((value.subject, "bold"), f": {what}, locked in {value.file}")]


def export(value: ExportView, *, verbose: bool) -> list[RenderableType]:
    """Which files were written."""
    del verbose
    return [Text.assemble((value.snapshot, "bold"), f" as {value.format}: {path}") for path in value.written]
