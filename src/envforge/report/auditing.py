"""An audit and a repair as text for a person: what was looked at, what seems to have happened, what was done."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.drift import Audit, Audits
from envforge.model.repair import Repair, RepairAction

from . import page, words


def audit(value: Audit, *, verbose: bool) -> list[RenderableType]:
    """The head and the events; findings come after it."""
    del verbose
    checked = value.checked
    how = "every file hashed" if value.deep else f"{words.size(checked.bytes)} hashed"
    kept = value.generation is not None
    lines: list[RenderableType] = [
        Text.assemble(
            (f"{value.environment} generation {value.generation}" if kept else value.environment, "bold"),
            f": {words.count(checked.distributions, 'distribution')}, {words.count(checked.files, 'file')}, {how}, "
            f"{words.seconds(checked.seconds)}",
        )
    ]
    lines += [page.bullet("~", "yellow", event.text) for event in value.events]
    lines += [page.bullet("·", "cyan", f"in use by process {process}") for process in value.processes]
    lines += [page.bullet("·", "cyan", f"outdated: {text}") for text in value.outdated]
    lines += [page.bullet("?", "yellow", f"not known: {text}") for text in value.unknown]
    if not kept:
        lines.append(
            Text("no snapshot of it is recorded: its files were compared with what RECORD or conda-meta says of each")
        )
    elif not value.events:
        lines.append(Text("everything is as recorded", style="green"))
    return lines


def audits(value: Audits, *, verbose: bool) -> list[RenderableType]:
    """One after the other."""
    return [line for each in value.environments for line in audit(each, verbose=verbose)]


_DONE = {
    "reinstall": ("+", "green", "brought back", "would be brought back"),
    "restore": ("+", "green", "restored", "would be restored"),
    "remove": ("-", "red", "removed", "would be removed"),
    "set-aside": ("-", "yellow", "moved aside", "would be moved aside"),
}


def repair(value: Repair, *, verbose: bool) -> list[RenderableType]:
    """What was done, or would be, and what cannot be; the findings that are left come after it."""
    del verbose
    lines: list[RenderableType] = []
    for each in value.actions:
        sign, color, done, to_do = _DONE[each.action]
        lines.append(page.bullet(sign, color, f"{_what(each)} {to_do if value.dry_run else done}"))
    lines += [
        page.bullet("!", "red", f"{each.subject} cannot be put right in place: {each.why}") for each in value.lost
    ]
    if value.evicted:
        lines.append(Text(f"damaged copies taken out of the cache: {', '.join(value.evicted)}"))
    if value.shared:
        lines.append(
            Text(
                f"the same files, changed, are also in {', '.join(value.shared)}: repair what of these is in use, and "
                "go back to others only by `envforge rollback ENV ENV/G.K`, which builds anew"
            )
        )
    if value.aside is not None:
        lines.append(Text(f"what was moved aside lies in {value.aside}"))
    name = f"{value.environment} generation {value.generation}"
    if not value.actions and not value.lost:
        lines.append(Text(f"{name}: there is nothing to repair in place"))
    elif not value.dry_run and not value.actions:
        lines.append(Text.assemble((name, "bold"), ": nothing of it could be repaired"))
    elif not value.dry_run:
        lines.append(Text.assemble((name, "bold"), f": repaired in {words.seconds(value.seconds)}, then audited"))
    return lines


def _what(action: RepairAction) -> str:
    version = f" {action.version}" if action.version else ""
    count = f" ({words.count(action.files, 'file')})" if action.files > 1 or action.version else ""
    return f"{action.subject}{version}{count}"
