"""A result as text for a person; pure: width, colour and detail come from the caller."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from rich.console import Console, RenderableType

from envforge.model.draft import Imported
from envforge.model.drift import Accepted, Adopted, Audit, Audits, Switch
from envforge.model.machine import Machine
from envforge.model.plan import Plan
from envforge.model.repair import Repair
from envforge.model.result import Build, Result
from envforge.model.smoked import SmokeView
from envforge.model.views import (
    BundleView,
    DiffView,
    ExportView,
    HistoryView,
    InspectView,
    ListView,
    LockView,
    ModelsView,
    ProfilesView,
    PruneView,
    RemoveView,
    Sealed,
    ShowView,
    SuggestView,
)

from . import auditing, building, exporting, inspecting, looking, models, page, proving, pruning, suggesting, taking

NARROWEST = 40
WIDTH_WITHOUT_TERMINAL = 100

_RENDERERS: dict[type, Callable[..., list[RenderableType]]] = {
    Plan: building.plan,
    Machine: looking.machine,
    ProfilesView: looking.profiles,
    ListView: looking.listing,
    ShowView: looking.show,
    HistoryView: looking.history,
    DiffView: looking.diff,
    InspectView: inspecting.inspect,
    RemoveView: looking.remove,
    PruneView: pruning.prune,
    Sealed: looking.sealed,
    Audit: auditing.audit,
    Audits: auditing.audits,
    Repair: auditing.repair,
    Accepted: taking.accepted,
    Adopted: taking.adopted,
    Imported: taking.imported,
    Switch: building.switch,
    LockView: exporting.lock,
    ExportView: exporting.export,
    BundleView: exporting.bundle,
    SuggestView: suggesting.suggest,
    SmokeView: proving.smoke,
    ModelsView: models.models,
}


def render(
    result: Result[Any],
    *,
    width: int = WIDTH_WITHOUT_TERMINAL,
    color: bool = False,
    verbose: bool = False,
    program: str = "envforge",
) -> str:
    """The whole answer of a command: what it found, then its findings, worst first.

    A line is at most ``width`` columns (never less than 40), without trailing blanks. ``program``: what is typed to
    start envforge.
    """
    if isinstance(result.data, Build):
        lines = building.build(result.data, verbose=verbose, program=program)
    else:
        lines = _RENDERERS[type(result.data)](result.data, verbose=verbose)
    grouped = isinstance(result.data, Audit | Audits | Repair | SuggestView)
    found = (page.by_remedy if grouped else page.findings)(result.findings, verbose=verbose)
    if found and lines:
        lines.append(page.blank())
    return text([*lines, *found], width=width, color=color)


def text(lines: list[RenderableType], *, width: int, color: bool) -> str:
    """Rich renderables as a string that depends on nothing but the arguments."""
    target = io.StringIO()
    console = Console(
        file=target,
        width=max(width, NARROWEST),
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    for line in lines:
        console.print(line)
    return "".join(f"{row.rstrip()}\n" for row in target.getvalue().splitlines())
