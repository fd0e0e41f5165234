"""An audit as text for a person: what was looked at, what seems to have happened, who uses it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.drift import Audit, Audits

from . import page, words


def audit(value: Audit, *, verbose: bool) -> list[RenderableType]:
    """The head and the events; findings come after it."""
    del verbose
    checked = value.checked
    how = "every file hashed" if value.deep else f"{words.size(checked.bytes)} hashed"
    lines: list[RenderableType] = [
        Text.assemble(
            (f"{value.environment} generation {value.generation}", "bold"),
            f": {words.count(checked.distributions, 'distribution')}, {words.count(checked.files, 'file')}, {how}, "
            f"{words.seconds(checked.seconds)}",
        )
    ]
    lines += [page.bullet("~", "yellow", event.text) for event in value.events]
    lines += [page.bullet("·", "cyan", f"in use by process {process}") for process in value.processes]
    lines += [page.bullet("·", "cyan", f"outdated: {text}") for text in value.outdated]
    if not value.events:
        lines.append(Text("everything is as recorded", style="green"))
    return lines


def audits(value: Audits, *, verbose: bool) -> list[RenderableType]:
    """One after the other."""
    return [line for each in value.environments for line in audit(each, verbose=verbose)]
