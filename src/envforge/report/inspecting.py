"""`inspect` on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from envforge.model.views import Inspected, InspectView

from . import page, words


def inspect(value: InspectView, *, verbose: bool) -> list[RenderableType]:
    """A table of the distributions with GPU code; with ``verbose`` of all, and each file."""
    number = sum(each.objects for each in value.distributions)
    cards = f"for compute capability {', '.join(value.cards)}" if value.cards else "no card to judge for"
    head = Text.assemble(
        (value.subject, "bold"), f": {words.count(number, 'compiled file')}, {cards}, {words.seconds(value.seconds)}"
    )
    lines: list[RenderableType] = [head]
    shown = [each for each in value.distributions if each.code or verbose]
    if shown:
        lines.append(_table(shown, value.cards))
    elif number:
        lines.append(Text("no GPU code"))
    for each in value.distributions:
        for file in each.files:
            if file.trouble or verbose:
                text = f"{file.path}: {file.trouble or short(file.code)}"
                lines.append(page.bullet("!" if file.trouble else "·", "yellow" if file.trouble else "cyan", text))
    return lines


def _table(values: Iterable[Inspected], cards: tuple[str, ...]) -> RenderableType:
    """As `page.table`, but for the last column, which goes on in the next line."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for heading in ("distribution", "files", "runs on"):
        table.add_column(heading, no_wrap=True)
    table.add_column("GPU code")
    for each in values:
        name = Text.assemble((each.name or "of nobody", "bold"), f" {each.version}" if each.version else "")
        table.add_row(name, str(each.objects), _fits(each, cards), short(each.code))
    return table


def _fits(each: Inspected, cards: tuple[str, ...]) -> Text:
    if not each.code or not cards:
        return Text()
    return Text(", ".join(each.fits) or "none", style="" if set(each.fits) == set(cards) else "yellow")


def short(codes: Iterable[str]) -> str:
    """``sm 70, 75, 90a; ptx 80`` of ``sm_70``, ``sm_75``, ``sm_90a``, ``ptx_80``."""
    kinds: dict[str, list[str]] = {}
    for code in codes:
        kind, _, arch = code.partition("_")
        kinds.setdefault(kind, []).append(arch)
    return "; ".join(f"{kind} {', '.join(archs)}" for kind, archs in sorted(kinds.items(), reverse=True))
