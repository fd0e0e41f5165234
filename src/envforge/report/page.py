"""The few shapes that every screen is made of: headings, change rows, findings, key and value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from envforge.model.finding import Finding, Severity
from envforge.model.plan import Change
from envforge.model.views import Activation

from . import words
from .story import Chapter

SEVERITY_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_ADDED_SHOWN = 8
_FOUR_COLUMNS = 60
_LINES_OF_A_CHECK = 10


def blank() -> Text:
    return Text("")


def indent(item: RenderableType, by: int = 2) -> RenderableType:
    return Padding(item, (0, 0, 0, by))


def bullet(sign: str, style: str, text: Text | str) -> RenderableType:
    """A sign, and text that hangs beside it however often it wraps."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(Text(sign, style=style), text)
    return grid


def pairs(rows: Iterable[tuple[str, str | Text | None]]) -> RenderableType:
    """Name and value, one a line; a value of None is left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(ratio=1, overflow="fold")
    for name, value in rows:
        if value is not None:
            grid.add_row(name, value)
    return grid


def activation(value: Activation | None, name: str) -> list[tuple[str, str | Text | None]]:
    """How conda activates the environment ``name``, as rows of `pairs`; none where it cannot."""
    if value is None:
        return []
    if value.by_name is not None:
        return [("conda", value.by_name)]
    rows: list[tuple[str, str | Text | None]] = [("conda", value.by_path)]
    if value.enable is not None:
        rows.append(("by name", f"after `{value.enable}`"))
    if value.other is not None:
        rows.append(("", Text(f"`conda activate {name}` takes {value.other}", style="yellow")))
    return rows


class Fitting:
    """``wide`` where there are ``least`` columns, else ``narrow``."""

    def __init__(self, wide: RenderableType, narrow: RenderableType, least: int) -> None:
        self._wide = wide
        self._narrow = narrow
        self._least = least

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield self._wide if options.max_width >= self._least else self._narrow


def table(headings: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> RenderableType:
    """A plain table: bold headings, no frame. Where its rows do not fit, one value a line below the first of a row."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        grid.add_column(heading, no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    lines: list[RenderableType] = []
    for first, *others in rows:
        values = zip(headings[1:], others, strict=True)
        lines += [first, indent(pairs((heading, value) for heading, value in values if value))]
    widest = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    return Fitting(grid, Group(*lines), sum(widest) + 2 * len(widest))


def changes(values: Sequence[Change], *, verbose: bool) -> list[RenderableType]:
    """Replaced and removed ones a line each with their cause; additions in one line, unless ``verbose``."""
    moved = [change for change in values if change.before is not None]
    added = [change for change in values if change.before is None]
    shown: list[RenderableType] = []
    if moved:
        shown.append(_rows([_moved(change, verbose=verbose) for change in moved]))
    if added and verbose:
        shown.append(_rows([_added(change) for change in added]))
    elif added:
        shown.append(_summary(added))
    return shown


def _rows(rows: Sequence[tuple[Text, Text, Text, Text]]) -> RenderableType:
    """Four columns, or where the terminal is narrow a line for what changed and one for its cause."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", min_width=12)
    grid.add_column(overflow="fold", min_width=12)
    grid.add_column(ratio=1, overflow="fold", min_width=16)
    lines: list[RenderableType] = []
    for row in rows:
        grid.add_row(*row)
        sign, name, version, because = row
        lines.append(Text.assemble(sign, " ", name, " ", version))
        if because:
            lines.append(indent(because))
    return Fitting(grid, Group(*lines), _FOUR_COLUMNS)


def _moved(change: Change, *, verbose: bool) -> tuple[Text, Text, Text, Text]:
    old, new = words.replaced(change)
    removed = change.after is None
    versions = Text.assemble((old, "dim"), " → ", (new, "red" if removed else "bold"))
    return (
        Text("-" if removed else "~", style="red" if removed else "yellow"),
        Text(change.label, style="bold"),
        versions,
        _because(change, verbose=verbose),
    )


def _added(change: Change) -> tuple[Text, Text, Text, Text]:
    version = change.after.version if change.after else ""
    return Text("+", style="green"), Text(change.label), Text(version), _because(change, verbose=True)


def _because(change: Change, *, verbose: bool) -> Text:
    parts = Text()
    if verbose and change.after is not None:
        known = [change.after.index, words.size(change.after.size) if change.after.size is not None else None]
        parts.append("".join(f"{part}  " for part in known if part), style="dim")
    if change.because is not None:
        parts.append(str(change.because))
        chain = words.via(change)
        if verbose and chain:
            parts.append(f" ({chain})", style="dim")
    return parts


def _summary(added: Sequence[Change]) -> RenderableType:
    total = sum(change.after.size or 0 for change in added if change.after)
    names = [f"{one.label} {one.after.version}" if one.after else one.label for one in words.by_weight(added)]
    text = Text.assemble(
        (f"{len(added):,} added", "green"),
        (f" ({words.size(total)})" if total else "", "dim"),
        ": ",
        words.cut(names, _ADDED_SHOWN),
    )
    return bullet("+", "green", text)


_SIGN = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.INFO: "·"}


def opened(chapter: Chapter, *, brief: bool = False) -> list[RenderableType]:
    """The moment where a guard opens: what, why, and who heals it; ``brief``: what stays open is told elsewhere."""
    finding = chapter.finding
    style = SEVERITY_STYLE[finding.severity]
    head = Text.assemble((f"opens {finding.id}", style), f" {finding.subject}")
    if brief and chapter.healed is None:
        return [bullet(_SIGN[finding.severity], style, head.append(", and nothing heals it: see below"))]
    head.append(f": {finding.message}")
    lines: list[RenderableType] = [bullet(_SIGN[finding.severity], style, head)]
    cause = words.unsaid(chapter.cause, finding.message)
    if cause:
        lines.append(indent(Text.assemble(("because ", "dim"), cause)))
    return [*lines, *_healer(chapter)]


def told(chapter: Chapter) -> list[RenderableType]:
    """The same in short, told afterwards: what matters then is through whom it opened."""
    finding = chapter.finding
    style = SEVERITY_STYLE[finding.severity]
    head = Text.assemble((f"step `{chapter.opened}` opened {finding.id}", style), f" {finding.subject}: ")
    head.append(chapter.cause if chapter.cause and chapter.healed else finding.message)
    return [bullet(_SIGN[finding.severity], style, head), *_healer(chapter)]


def _healer(chapter: Chapter) -> list[RenderableType]:
    if chapter.healed is None:
        return []
    return [indent(bullet("✓", "green", Text(f"healed by step `{chapter.healed}`")))]


def healed(chapter: Chapter) -> RenderableType:
    finding = chapter.finding
    text = Text.assemble((f"heals {finding.id}", "green"), f" {finding.subject}, open since step `{chapter.opened}`")
    return bullet("✓", "green", text)


def findings(values: Iterable[Finding], *, verbose: bool) -> list[RenderableType]:
    """Worst first, each with what to do; those of severity info only where ``verbose``, else summed up in a line."""
    shown, rest = _shown(values, verbose=verbose)
    lines: list[RenderableType] = []
    for finding in shown:
        lines += [_head(finding), *_said(finding, verbose=verbose)]
        if finding.remedy:
            lines.append(indent(Text.assemble(("do: ", "dim"), finding.remedy)))
    return [*lines, *rest]


def by_remedy(values: Iterable[Finding], *, verbose: bool) -> list[RenderableType]:
    """The same, grouped by what to do about them: the group with the worst first, each with its number."""
    shown, rest = _shown(values, verbose=verbose)
    groups: dict[str, list[Finding]] = {}
    for finding in shown:
        groups.setdefault(finding.remedy or "", []).append(finding)
    lines: list[RenderableType] = []
    for remedy, group in groups.items():
        if remedy:
            lines.append(
                Text.assemble((words.severities(group), SEVERITY_STYLE[group[0].severity]), ": ", (remedy, "bold"))
            )
        for finding in group:
            said = [_head(finding), *_said(finding, verbose=verbose)]
            lines += [indent(each) for each in said] if remedy else said
    return [*lines, *rest]


def _shown(values: Iterable[Finding], *, verbose: bool) -> tuple[list[Finding], list[RenderableType]]:
    """What is worth showing, worst first, and a line that sums up the others."""
    ordered = words.worst_first(values)
    shown = [finding for finding in ordered if verbose or finding.severity is not Severity.INFO]
    rest = words.remarks([finding for finding in ordered if finding not in shown])
    return shown, [Text(f"{rest}; --verbose shows more", style="dim")] if rest else []


def _head(finding: Finding) -> Text:
    style = SEVERITY_STYLE[finding.severity]
    where = f" (after step `{finding.step}`)" if finding.step else ""
    return Text.assemble(
        (f"{finding.severity.value} {finding.id}", style), f" {finding.subject}: {finding.message}", (where, "dim")
    )


def _said(finding: Finding, *, verbose: bool) -> list[RenderableType]:
    """The last lines of what a check said, and where all of it is."""
    tail = str(finding.evidence.get("tail") or "").splitlines()
    lines: list[RenderableType] = [
        indent(Text(line.rstrip(), style="dim")) for line in (tail if verbose else tail[-_LINES_OF_A_CHECK:])
    ]
    if finding.evidence.get("log"):
        lines.append(indent(Text.assemble(("all that it said: ", "dim"), str(finding.evidence["log"]))))
    return lines
