"""A ready `backfill` step as text for a person."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from envforge.model.views import Suggestion, SuggestView

from . import page, words

_NAMED = 3


def suggest(value: SuggestView, *, verbose: bool) -> list[RenderableType]:
    """What was looked at, and the step, to be copied into the profile."""
    looked = words.count(value.distributions, "distribution")
    where = f"{value.environment} generation {value.generation}"
    if not value.backfill:
        head = Text.assemble((where, "bold"), f": nothing to backfill; {looked} looked at")
    else:
        head = Text.assemble((where, "bold"), f": a step for its profile; {looked} looked at")
    lines: list[RenderableType] = [head]
    lines += [page.indent(Text(line, no_wrap=True, overflow="ignore")) for line in step(value, verbose=verbose)]
    if value.unread:
        shown = words.cut(value.unread, len(value.unread) if verbose else _NAMED)
        lines.append(page.bullet("!", "yellow", f"{words.count(len(value.unread), 'file')} could not be read: {shown}"))
    return lines


def step(value: SuggestView, *, verbose: bool) -> Iterator[str]:
    """The lines of the YAML, each import a comment; nothing where there is none to make."""
    if value.backfill:
        yield "- name: backfill-imports"
        yield "  backfill:"
    for each in value.backfill:
        yield from (f"    # {line}" for line in _because(each, len(each.importers) if verbose else _NAMED))
        yield f"    - {each.requirement}"


def _because(suggestion: Suggestion, most: int) -> Iterator[str]:
    for each in suggestion.importers[:most]:
        yield f"{each.distribution} {each.version} imports {each.module} ({each.place})"
    more = len(suggestion.importers) - most
    if more > 0:
        yield f"and {words.count(more, 'other')}"
    if suggestion.assumed:
        yield "absent, and the name is assumed from the module's: see that it is the right one"
    elif not suggestion.present:
        yield "absent"
