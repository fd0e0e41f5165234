"""The models of an environment as text for a person."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.models import Condition
from envforge.model.profile import Hub
from envforge.model.views import ModelEntry, ModelsView

from . import page, words

_STYLES = {
    Condition.WHOLE: ("✓", "green"),
    Condition.PARTIAL: ("·", "yellow"),
    Condition.DAMAGED: ("✗", "bold red"),
    Condition.ABSENT: ("·", "yellow"),
}


def models(value: ModelsView, *, verbose: bool) -> list[RenderableType]:
    """One after the other, with what to do where one is missing; ``verbose``: with the commit."""
    head = Text.assemble((f"{value.environment} generation {value.generation}", "bold"), ": ")
    if not value.models:
        return [head.append("its profile names no models")]
    lines: list[RenderableType] = [head.append(words.count(len(value.models), "model"))]
    for each in value.models:
        sign, style = _STYLES[Condition(each.condition)]
        lines += [page.bullet(sign, style, _line(each, verbose=verbose)), page.indent(Text(each.path, style="dim"))]
    wanting = [each for each in value.models if each.condition != Condition.WHOLE and each.hub != Hub.PATH]
    if wanting:
        lines.append(Text(f"`envforge models {value.environment} --fetch` fetches what is missing"))
    return lines


def _line(each: ModelEntry, *, verbose: bool) -> Text:
    where = each.hub if each.hub == Hub.PATH else f"{each.hub}, {each.revision}"
    if verbose and each.commit is not None:
        where += f" ({each.commit})"
    how = "fetched" if each.fetched else each.condition
    size = f", {words.size(each.bytes)}" if each.bytes else ""
    return Text.assemble((each.name, "bold"), f" from {where}: {how}{size}")
