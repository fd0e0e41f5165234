"""A draft as the text of a profile, with its notes as comments where they belong."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from envforge.model.draft import Draft, ImportNote, NoteKind
from envforge.profiles.build import document, flat

_WIDTH = 110
_WORDS = {NoteKind.ASSUMED: "assumed", NoteKind.LOST: "not carried over"}


def render(draft: Draft) -> str:
    """The YAML text; `loader.loads` reads the draft's profile from it."""
    whole = document(draft.profile)
    if "conda" in whole:
        whole["conda"] = {key: value for key, value in whole["conda"].items() if value}
    plain = {key: value for key, value in whole.items() if value not in ("", [], {}, None)}
    rows = _comment(f"A first profile, from `{draft.source}`, read as {draft.format.words}.")
    rows += _comment("Read what is said below, take it out, then try `envforge plan` on this file.")
    # What belongs to a part that there is not is said at the top.
    parts = {*plain, *(f"steps.{step.name}" for step in draft.profile.steps)}
    rows += _notes(draft, (note for note in draft.notes if note.about not in parts))
    for key, value in plain.items():
        rows += _notes(draft, (note for note in draft.notes if note.about == key))
        if key == "steps":
            rows.append("steps:")
            for entry in value:
                about = f"steps.{entry['name']}"
                rows += _notes(draft, (note for note in draft.notes if note.about == about), indent="  ")
                rows += _item(entry)
        elif isinstance(value, list):
            rows += [f"{key}:", *(row for entry in value for row in _item(entry))]
        elif isinstance(value, dict):
            rows.append(f"{key}:")
            for name, inner in value.items():
                rows += _entry(name, inner, "  ")
        else:
            rows.append(flat({key: value})[1:-1])
    return "\n".join(rows) + "\n"


def _item(entry: dict[str, Any]) -> list[str]:
    """An item of a list: in one line where it fits."""
    line = f"  - {flat(entry)}"
    if len(line) <= _WIDTH:
        return [line]
    rows = [row for key, value in entry.items() for row in _entry(key, value, "    ")]
    return [f"  - {rows[0].lstrip()}", *rows[1:]]


def _entry(key: str, value: Any, indent: str) -> list[str]:
    """A key with its value: in one line where it fits or nothing can be folded."""
    line = f"{indent}{flat({key: value})[1:-1]}"
    if len(line) <= _WIDTH or not isinstance(value, list):
        return [line]
    head = flat({key: ""})[1:-1].rpartition(":")[0]
    return [f"{indent}{head}:", *(f"{indent}  - {flat([item])[1:-1]}" for item in value)]


def _notes(draft: Draft, notes: Iterable[ImportNote], indent: str = "") -> list[str]:
    rows: list[str] = []
    for note in notes:
        place = "" if note.file == draft.source else f"{note.file} "
        where = "" if note.line is None else f" ({place}line {note.line})"
        rows += _comment(f"{_WORDS[note.kind]}{where}: {note.text}", indent)
    return rows


def _comment(text: str, indent: str = "") -> list[str]:
    """Lines of a comment; what is no visible character could end it."""
    visible = "".join(character if character.isprintable() else " " for character in text)
    lines = textwrap.wrap(visible, _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {'  ' if position else ''}{line}" for position, line in enumerate(lines)]
