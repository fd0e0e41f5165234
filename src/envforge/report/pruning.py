"""What was pruned, or would be, as text for a person: in groups, then what stays, then what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from envforge.model.views import Pruned, PruneView, Skipped, Unrestorable

from . import page, words

_KINDS = {
    "old": "old generations",
    "failed": "failed generations",
    "orphan": "left behind",
    "cache": "cache",
    "model": "models",
}
_SHOWN = 8


def prune(value: PruneView, *, verbose: bool) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for kind, heading in _KINDS.items():
        group = [each for each in value.removed if each.kind == kind]
        if group:
            lines += _group(heading, group, dry_run=value.dry_run, verbose=verbose)
    lines += [page.bullet("·", "cyan", _stays(each)) for each in value.skipped]
    if value.unrestorable:
        lines += _unrestorable(value.unrestorable, dry_run=value.dry_run, verbose=verbose)
    if not value.removed:
        return [*lines, Text("nothing to remove")]
    total = words.size(value.bytes)
    return [*lines, Text(f"would free {total}" if value.dry_run else f"{total} freed", style="bold")]


def _group(heading: str, group: Sequence[Pruned], *, dry_run: bool, verbose: bool) -> list[RenderableType]:
    ordered = sorted(group, key=lambda each: -each.bytes) if group[0].kind == "cache" else group
    total = words.size(sum(each.bytes for each in group))
    head = Text.assemble((f"{'would remove' if dry_run else 'removed'} {heading}", "bold"), f": {total}")
    names = [f"{each.what} ({words.size(each.bytes)})" for each in ordered]
    shown = [Text(name) for name in names] if verbose else [Text(words.cut(names, _SHOWN))]
    return [head, *map(page.indent, shown)]


def _stays(each: Skipped) -> str:
    users = ", ".join(f"process {user.pid} of {user.user} ({user.command})" for user in each.processes)
    return f"{each.what} stays: {f'{each.why} by {users}; --in-use removes it all the same' if users else each.why}"


def _unrestorable(values: Sequence[Unrestorable], *, dry_run: bool, verbose: bool) -> list[RenderableType]:
    """One line a generation, of which the last snapshot lacks most; each snapshot where ``verbose``."""
    last = {each.snapshot.rpartition(".")[0]: each for each in values}
    head = f"{'could then' if dry_run else 'can'} no longer be restored offline"
    lines: list[RenderableType] = [Text(head, style="bold yellow")]
    for each in values if verbose else last.values():
        names = words.cut(each.distributions, len(each.distributions) if verbose else _SHOWN)
        lines.append(page.indent(Text(f"{each.snapshot}: {names}")))
        if each.built:
            built = words.cut(each.built, len(each.built) if verbose else _SHOWN)
            lines.append(page.indent(Text(f"built here, so not even with the network: {built}"), 4))
    return lines
