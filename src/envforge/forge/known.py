"""What earlier installations from this cache taught about a wheel: how much it takes, and what its files look like.

uv shares files by hard link: one edited in place in any environment is edited in the cache too, and comes with every
environment made later, though its wheel's hash was right. Its mtime then differs from what it was when it was unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.engines.pages import write_atomically
from envforge.model.state import FileRow, Observation, State

_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})


@dataclass(frozen=True, slots=True)
class Known:
    """``folder`` holds one small file for every wheel, named by its sha256."""

    folder: Path

    def size(self, sha256: str) -> int | None:
        """Bytes that the wheel takes unpacked; None where it was never installed from this cache."""
        size = self._read(sha256).get("bytes")
        return size if isinstance(size, int) else None

    def suspects(self, observation: Observation, state: State, names: set[str]) -> tuple[str, ...]:
        """Those of ``names`` whose files do not look as when their wheel was installed before, or never was."""
        looks = _looks(observation, names)
        return tuple(
            name
            for name in sorted(names & state.keys())
            if self._read(state[name].sha256 or "").get("looks") != looks.get(name, (0, ""))[1]
        )

    def new(self, sha256: str) -> bool:
        """Whether the wheel was never installed from this cache."""
        return not (self.folder / sha256).exists()

    def lies(self, sha256: str) -> frozenset[str]:
        """Paths (see `inner`) of which the wheel's own RECORD does not tell the truth, as seen when it was fresh."""
        return frozenset(self._read(sha256).get("lies", ()))

    def learn(self, observation: Observation, state: State, lies: Mapping[str, tuple[str, ...]]) -> None:
        """Keep what was not known. ``lies``: canonical name -> paths in the prefix, see `lies`."""
        new = {
            name: item.sha256 for name, item in state.items() if item.sha256 is not None and not self._read(item.sha256)
        }
        if new:
            for name, (size, look) in _looks(observation, set(new)).items():
                told = {"bytes": size, "looks": look, "lies": sorted(map(inner, lies.get(name, ())))}
                write_atomically(self.folder / new[name], json.dumps(told).encode())

    def forget(self, sha256: str) -> None:
        """The cache no longer holds it."""
        (self.folder / sha256).unlink(missing_ok=True)

    def _read(self, sha256: str) -> dict[str, Any]:
        try:
            data = json.loads((self.folder / sha256).read_text())
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}


def _looks(observation: Observation, names: set[str]) -> dict[str, tuple[int, str]]:
    """Canonical name -> its bytes, and a digest of path, size and mtime of the files that are as the wheel has them."""
    rows: dict[str, list[FileRow]] = {name: [] for name in names}
    for row in observation.files:
        if len(row.owners) == 1 and row.owners[0] in rows:
            rows[row.owners[0]].append(row)
    return {
        name: (
            sum(row.size for row in owned),
            hashlib.sha256(os.fsencode("".join(_look(row) for row in owned if _as_is(row)))).hexdigest(),
        )
        for name, owned in rows.items()
    }


def _look(row: FileRow) -> str:
    return f"{inner(row.path)}\0{row.size}\0{row.mtime}\n"


def inner(path: str) -> str:
    """A path as the wheel has it, the same for every Python."""
    return path.partition("/site-packages/")[2] or path


def is_note(path: str) -> bool:
    """Whether it is one of the notes that an installer writes into a dist-info, each time anew."""
    name = path.rpartition("/")[2]
    return ".dist-info/" in path and (name in _NOTES or name.startswith("uv_"))


def _as_is(row: FileRow) -> bool:
    """Not what an installer writes anew each time: scripts, and its own notes in the dist-info."""
    return not is_note(row.path) and not row.path.startswith("bin/")
