"""A ready `backfill` step as text for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from envforge.model.views import Suggestion, SuggestView

from . import page, words

_NAMED = 3


class _Comment:
    """A remark in YAML: every line of it begins with a ``#``, however narrow the terminal."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield from (Text(f"# {line}", style="dim") for line in textwrap.wrap(self._text, options.max_width - 2))


def suggest(value: SuggestView, *, verbose: bool) -> list[RenderableType]:
    """What was looked at, and the step, to be copied into the profile."""
    what = "a step for its profile" if value.backfill else "nothing to backfill"
    looked = words.count(value.distributions, "distribution")
    head = Text.assemble(
        (f"{value.environment} generation {value.generation}", "bold"), f": {what}; {looked} looked at"
    )
    lines: list[RenderableType] = [head]
    if value.backfill:
        lines += [page.indent(Text("- name: backfill-imports")), page.indent(Text("backfill:"), 4)]
    for each in value.backfill:
        remarks = _because(each, len(each.importers) if verbose else _NAMED)
        lines += [page.indent(_Comment(remark), 6) for remark in remarks]
        lines.append(page.indent(Text(f"- {each.requirement}"), 6))
    if value.unread:
        shown = words.cut(value.unread, len(value.unread) if verbose else _NAMED)
        lines.append(page.bullet("!", "yellow", f"{words.count(len(value.unread), 'file')} could not be read: {shown}"))
    return lines


def _because(suggestion: Suggestion, most: int) -> Iterator[str]:
    end = "" if suggestion.present else "; nothing here brings it"
    for each in suggestion.importers[:most]:
        yield f"{each.distribution} {each.version} imports {each.module} ({each.place}){end}"
    more = len(suggestion.importers) - most
    if more > 0:
        yield f"and {words.count(more, 'other')}"
    if suggestion.assumed:
        yield "assumed from the module's name: see that it is the right one"
