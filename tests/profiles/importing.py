"""What an import makes of a file: the draft, and the profile that its text loads as."""

from __future__ import annotations

from pathlib import Path

from envforge.model.draft import Draft, NoteKind, SourceFormat
from envforge.model.profile import Index, Profile, Step
from envforge.profiles import loader
from envforge.profiles.importing import detect, render


class Case:
    """Files in a folder, of which one is imported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def draft(self, name: str, content: str | bytes | None = None) -> Outcome:
        path = self.put(name, content) if content is not None else self.folder / name
        return Outcome(detect.draft(path, name="demo"), path)


class Outcome:
    """A draft whose text was loaded again and came back equal."""

    def __init__(self, draft: Draft, path: Path) -> None:
        self.draft = draft
        self.path = path
        self.text = render.render(draft)
        self.profile: Profile = loader.loads(self.text, "imported.yaml")
        wanted = draft.profile
        for name in ("name", "python", "backend", "conda", "indexes", "environment", "steps", "guards", "summary"):
            assert getattr(self.profile, name) == getattr(wanted, name)

    @property
    def format(self) -> SourceFormat:
        return self.draft.format

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.profile.steps

    @property
    def installs(self) -> list[tuple[str, ...]]:
        return [step.arguments for step in self.steps]

    @property
    def indexes(self) -> dict[str, Index]:
        return {index.name: index for index in self.profile.indexes}

    @property
    def lost(self) -> dict[int | None, str]:
        """Line -> what is not carried over, joined."""
        return self._notes(NoteKind.LOST)

    @property
    def assumed(self) -> dict[int | None, str]:
        return self._notes(NoteKind.ASSUMED)

    def _notes(self, kind: NoteKind) -> dict[int | None, str]:
        found: dict[int | None, str] = {}
        for note in self.draft.notes:
            if note.kind is kind:
                found[note.line] = f"{found[note.line]}; {note.text}" if note.line in found else note.text
        return found
