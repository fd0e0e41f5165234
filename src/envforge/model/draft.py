"""What was imported from another tool's file: a first profile, and what had to be assumed or was left out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .profile import Profile


class SourceFormat(StrEnum):
    REQUIREMENTS = "requirements"
    FREEZE = "freeze"
    ENVIRONMENT_YML = "environment-yml"
    CONDA_LOCK = "conda-lock"
    CONDA_EXPLICIT = "conda-explicit"
    PYLOCK = "pylock"
    SCRIPT = "script"
    README = "readme"

    @property
    def words(self) -> str:
        """The format as a person calls it."""
        return _WORDS[self]


_WORDS = {
    SourceFormat.REQUIREMENTS: "a requirements file of pip",
    SourceFormat.FREEZE: "the output of pip freeze",
    SourceFormat.ENVIRONMENT_YML: "an environment.yml of conda",
    SourceFormat.CONDA_LOCK: "a lock of conda-lock",
    SourceFormat.CONDA_EXPLICIT: "an explicit list of conda",
    SourceFormat.PYLOCK: "a pylock.toml",
    SourceFormat.SCRIPT: "a shell script",
    SourceFormat.README: "the shell blocks of a Markdown page",
}


class NoteKind(StrEnum):
    ASSUMED = "assumed"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportNote:
    """``file`` and ``line`` (from 1; None = the file as a whole) of the source.

    ``about``: the part of the profile that it belongs to, as ``python`` or ``steps.NAME``; empty = the whole.
    """

    file: str
    line: int | None
    text: str
    kind: NoteKind
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """``profile.text`` is empty: what is written is the draft with its notes as comments."""

    profile: Profile
    format: SourceFormat
    source: str
    notes: tuple[ImportNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """``profile``: the YAML text. ``written``: the file that it went to; None where it was only printed."""

    name: str
    format: SourceFormat
    source: str
    profile: str
    written: str | None
    notes: tuple[ImportNote, ...]
