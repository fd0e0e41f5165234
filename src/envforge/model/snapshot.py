"""What an environment held after a step, and the events of a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .state import FileRow, State

SNAPSHOT_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFor:
    """A card that was there and that the profile is for."""

    uuid: str
    name: str
    compute_capability: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Named ``ENV/G.K``: generation G (from 1), after step K (from 1; 0 is the empty environment).

    What was adopted is the first of its generation; what was accepted follows the last. Neither has a ``step_name``.

    ``made`` is an ISO 8601 time in UTC; ``by`` a user name; ``machine`` and ``driver`` where it was made, and
    ``cards`` those there that the profile is for (none where it says nothing of cards, or an older envforge wrote it);
    ``lock`` the file name of the PEP 751 lock beside it that restores it.
    """

    environment: str
    generation: int
    step: int
    step_name: str | None
    made: str
    by: str
    machine: str
    driver: str | None
    python: str
    engine: str
    state: State
    files: tuple[FileRow, ...] = ()
    cards: tuple[BuiltFor, ...] = ()
    lock: str | None = None
    schema: int = SNAPSHOT_SCHEMA

    @property
    def id(self) -> str:
        return f"{self.environment}/{self.generation}.{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a generation's journal. ``kind``: started, step-started, step-finished, run, smoke, failed,
    interrupted, finished, switched, abandoned, pruned, sealed, unsealed, repair-started, repair-finished, adopted,
    accepted. ``data`` holds JSON-able values only.
    """

    kind: str
    at: str
    data: Mapping[str, Any] = field(default_factory=dict)
