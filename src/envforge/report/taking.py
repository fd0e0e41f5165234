"""What was accepted, adopted or imported as text for a person: what was taken, and what is not carried along."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.draft import Imported, NoteKind
from envforge.model.drift import Accepted, Adopted, NotReproducible

from . import page, words

_SHOWN = 8


def accepted(value: Accepted, *, verbose: bool) -> list[RenderableType]:
    """What was taken, and what a fresh build would not bring."""
    where = f"{value.environment} generation {value.generation}"
    if value.snapshot is None and not value.changes and not value.files:
        return [Text.assemble((where, "bold"), ": nothing has drifted, so nothing is written")]
    lines: list[RenderableType] = [
        Text.assemble((value.snapshot, "bold"), " is what is there now")
        if value.snapshot is not None
        else Text.assemble((where, "bold"), (" is not accepted", "bold red"), ", and nothing is written")
    ]
    lines += page.changes(value.changes, verbose=verbose)
    if value.files:
        lines.append(page.bullet("~", "yellow", f"{words.count(value.files, 'other file')} not as recorded before"))
    return lines + _not_reproducible(value.not_reproducible, verbose=verbose)


def _not_reproducible(value: NotReproducible, *, verbose: bool) -> list[RenderableType]:
    rows = [
        ("distributions", value.distributions, "whose file no lock knows"),
        ("removed", value.removed, "which it would bring back"),
        ("files", value.files, "with other bytes than it gives them"),
        ("unowned", value.unowned, "which belong to no distribution"),
    ]
    lines = [
        (name, Text.assemble(words.cut(what, len(what) if verbose else _SHOWN), (f"  {why}", "dim")))
        for name, what, why in rows
        if what
    ]
    if not lines:
        return []
    return [Text("a fresh build would not reproduce", style="bold"), page.indent(page.pairs(lines))]


def adopted(value: Adopted, *, verbose: bool) -> list[RenderableType]:
    """Where it is, and what was looked at."""
    del verbose
    checked = value.checked
    return [
        Text.assemble(
            (value.environment, "bold"),
            f" is {value.path} from now on: {value.backend}, Python {value.python}, "
            f"{words.count(checked.distributions, 'distribution')}, {words.count(checked.files, 'file')}, "
            f"{words.size(checked.bytes)} hashed in {words.seconds(checked.seconds)}",
        ),
        Text.assemble((value.snapshot, "bold"), " is its first snapshot; nothing in it was changed"),
    ]


def imported(value: Imported, *, verbose: bool) -> list[RenderableType]:
    """Where the profile went, and every remark that stands in it as a comment."""
    del verbose
    head = Text.assemble((value.written or value.name, "bold"), f": a first profile `{value.name}` from {value.source}")
    lines: list[RenderableType] = [head]
    for note in value.notes:
        file = "" if note.file == value.source else f"{note.file} "
        where = "" if note.line is None else f" ({file}line {note.line})"
        sign, style, word = (
            ("✗", "yellow", "not carried over") if note.kind is NoteKind.LOST else ("·", "cyan", "assumed")
        )
        lines.append(page.bullet(sign, style, f"{word}{where}: {note.text}"))
    return lines
