"""Models as they lie in the home, and as a hub lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """``partial``: a fetch did not come to its end; ``damaged``: files are gone or not as they were fetched."""

    WHOLE = "whole"
    PARTIAL = "partial"
    DAMAGED = "damaged"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """``sha256`` or, for a small file, ``git`` (the sha1 of git's blob), in hex; None for what the hub does not say."""

    path: str
    size: int
    sha256: str | None = None
    git: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a hub has under a revision; ``commit`` None where it names none."""

    commit: str | None
    files: tuple[HubFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A model that was fetched whole: its files by path, and when it was (ISO 8601, UTC)."""

    commit: str | None
    fetched: str
    files: Mapping[str, KeptFile]
