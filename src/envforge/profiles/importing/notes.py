"""What is told of an import: each remark once, at its line, and never with a credential."""

from __future__ import annotations

from dataclasses import replace

from envforge.model.draft import ImportNote, NoteKind
from envforge.profiles.importing import addresses
from envforge.profiles.importing.text import Place

_CREDENTIALS = "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
_OTHERS = "no profile holds them"


class Notes:
    """Gathers the remarks on one source and the files that it names."""

    def __init__(self) -> None:
        self._notes: list[ImportNote] = []
        self._told: set[tuple[str, str, NoteKind]] = set()

    def assume(self, place: Place, text: str, about: str = "") -> None:
        self._note(place, text, NoteKind.ASSUMED, about)

    def lose(self, place: Place, text: str, about: str = "") -> None:
        self._note(place, text, NoteKind.LOST, about)

    def _note(self, place: Place, text: str, kind: NoteKind, about: str) -> None:
        """The same is told once a file, at its first line."""
        shown, _ = addresses.bare(text)
        if (place.file, shown, kind) not in self._told:
            self._told.add((place.file, shown, kind))
            self._notes.append(ImportNote(file=place.file, line=place.line, text=shown, kind=kind, about=about))

    @property
    def noted(self) -> int:
        """How many notes there are: what comes after can be given to a part."""
        return len(self._notes)

    def give(self, since: int, about: str) -> None:
        """Let the notes from ``since`` on that belong to nothing yet belong to ``about``."""
        self._notes[since:] = [note if note.about else replace(note, about=about) for note in self._notes[since:]]

    def address(self, place: Place, url: str, about: str = "") -> str:
        """``url`` without credentials; that it had such is told."""
        text, hidden = addresses.bare(url.strip())
        if hidden:
            self.lose(
                place, f"credentials in the URL `{text}`: {_CREDENTIALS if about == 'indexes' else _OTHERS}", about
            )
        return text
