"""Smoke checks as text for a person, and several environments side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from envforge.model.smoked import Compared, Generated, Proved, SmokeResult, SmokeView

from . import page, words

_SHOWN = 60


def smoke(value: SmokeView, *, verbose: bool) -> list[RenderableType]:
    """Every check of every environment, then what was asked of several of them."""
    lines: list[RenderableType] = []
    for one in value.environments:
        lines += [_heading(one), *checks(one.checks, text=verbose)]
    for compared in value.compared:
        lines += [page.blank(), *_compared(compared)]
    return lines


def tally(results: Sequence[SmokeResult]) -> list[RenderableType]:
    """How many passed, or failed; each that was skipped by name, since nobody knows of it."""
    failed = sum(result.failed for result in results)
    passed = sum(result.ok for result in results)
    lines: list[RenderableType] = []
    if failed:
        checks = f"{failed} of {words.count(len(results), 'smoke check')} failed"
        lines.append(page.bullet("✗", "bold red", checks))
    elif passed:
        lines.append(page.bullet("✓", "green", f"{words.count(passed, 'smoke check')} passed"))
    return [*lines, *(_check(result) for result in results if result.skipped is not None)]


def checks(results: Sequence[SmokeResult], *, text: bool = True) -> list[RenderableType]:
    """A line for each, and one for what it generated; ``text``: all of it."""
    lines: list[RenderableType] = []
    for result in results:
        lines.append(_check(result))
        if result.generated is not None:
            lines.append(page.indent(Text(_figures(result.generated), style="dim")))
            lines.append(page.indent(Text(_text(result.generated, whole=text), style="dim")))
    return lines


def _heading(one: Proved) -> Text:
    head = Text.assemble((one.environment, "bold"), f" generation {one.generation}")
    head.append(f" on {', '.join(one.cards)}" if one.cards else "", style="dim")
    return head


def _check(result: SmokeResult) -> RenderableType:
    if result.skipped is not None:
        return page.bullet("!", "yellow", f"smoke {result.smoke.name}: skipped, {result.skipped}")
    sign, style = ("✓", "green") if result.ok else ("✗", "bold red")
    return page.bullet(sign, style, f"smoke {result.smoke.name}: {result.ending} in {words.seconds(result.seconds)}")


def _figures(value: Generated) -> str:
    attention = f"attention {value.attention}, " if value.attention else ""
    return (
        f"{value.tokens_per_second:.1f} tokens/s, {attention}{words.size(value.memory)} on {value.device}, "
        f"loaded in {words.seconds(value.load_seconds)}"
    )


def _text(value: Generated, *, whole: bool) -> str:
    plain = " ".join(value.text.split())
    return plain if whole or len(plain) <= _SHOWN else f"{plain[:_SHOWN]}…"


def _compared(value: Compared) -> list[RenderableType]:
    """One row for each environment; speed also as it compares with the first."""
    first = value.answers[0].generated.tokens_per_second
    rows: list[list[str | Text]] = []
    for each in value.answers:
        made = each.generated
        speed = f"{made.tokens_per_second:.1f}"
        if rows and first:
            speed += f" ({(made.tokens_per_second / first - 1) * 100:+.0f} %)"
        attention = made.attention or "not told"
        rows.append([each.environment, each.engine, speed, attention, words.size(made.memory), made.device])
    verdict = (
        page.bullet("✓", "green", "the same text") if value.equal else page.bullet("≠", "yellow", "not the same text")
    )
    table = page.table(("environment", "engine", "tokens/s", "attention", "memory", "device"), rows)
    return [Text(f"{value.model}: {value.prompt}", style="bold"), table, verdict]
