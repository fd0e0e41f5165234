"""Snapshots on disk: ``records/NAME/G/snapshots/K.json``, its table of files and its lock beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.snapshot import Snapshot

from .atomic import read_text, write_text
from .encoding import dump_files, dump_snapshot, load_files, load_snapshot
from .layout import Home

_FILE = re.compile(r"(0|[1-9][0-9]{0,8})\.json", re.ASCII)


def folder(home: Home, name: str, generation: int) -> Path:
    """Where the snapshots of a generation lie."""
    return home.record(name, generation) / "snapshots"


def path(home: Home, name: str, generation: int, step: int) -> Path:
    """Where a snapshot lies."""
    return folder(home, name, generation) / f"{step}.json"


def table_path(home: Home, name: str, generation: int, step: int) -> Path:
    """Where the table of files of a snapshot lies."""
    return folder(home, name, generation) / f"{step}.files.json"


def lock_path(home: Home, name: str, generation: int, step: int) -> Path:
    """Where the PEP 751 lock of a snapshot lies, under a name that PEP 751 allows and uv insists on."""
    return folder(home, name, generation) / f"pylock.{step}.toml"


def write(home: Home, snapshot: Snapshot, lock_text: str | None) -> Snapshot:
    """Keep a snapshot and, unless None, its lock; returns it as kept (with ``lock`` named).

    The snapshot's own file comes last: where it exists, all of it does. Raises EnvforgeError ``home-not-writable``.
    """
    name, generation, step = snapshot.environment, snapshot.generation, snapshot.step
    home.make_folder(folder(home, name, generation))
    if lock_text is not None:
        lock = lock_path(home, name, generation, step)
        write_text(lock, lock_text)
        snapshot = replace(snapshot, lock=lock.name)
    write_text(table_path(home, name, generation, step), dump_files(snapshot.files))
    write_text(path(home, name, generation, step), dump_snapshot(snapshot))
    return snapshot


def read(home: Home, name: str, generation: int, step: int, *, files: bool = False) -> Snapshot:
    """A snapshot; its table of files (10 MB for 90,000 files) only with ``files``.

    Raises EnvforgeError ``snapshot-not-found`` or ``corrupt-record``, UsageError ``newer-record``.
    """
    place = path(home, name, generation, step)
    if not place.exists() and not place.is_symlink():
        there = ", ".join(f"`{name}/{generation}.{number}`" for number in numbers(home, name, generation))
        raise EnvforgeError(
            "snapshot-not-found",
            f"there is no snapshot `{name}/{generation}.{step}`",
            hint=f"there are {there}" if there else f"see `envforge history {name}`",
        )
    snapshot = load_snapshot(read_text(place, what="the snapshot"), place)
    if files:
        table = table_path(home, name, generation, step)
        snapshot = replace(snapshot, files=load_files(read_text(table, what="the table of files"), table))
    return snapshot


def numbers(home: Home, name: str, generation: int) -> tuple[int, ...]:
    """The steps that have a snapshot, ascending."""
    try:
        entries = [entry.name for entry in folder(home, name, generation).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(match[1]) for match in map(_FILE.fullmatch, entries) if match))


def latest(home: Home, name: str, generation: int, *, files: bool = False) -> Snapshot | None:
    """The snapshot after the last step that has one; raises as ``read`` does."""
    steps = numbers(home, name, generation)
    return read(home, name, generation, steps[-1], files=files) if steps else None
