"""A state that no step of a build made becomes a snapshot: what `accept` and `adopt` write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from envforge.model.profile import Profile
from envforge.model.snapshot import Snapshot
from envforge.model.state import FileRow, Observation, State, is_package
from envforge.probe import conda_meta, hashing
from envforge.probe import machine as machines
from envforge.store import contents, snapshots
from envforge.store.layout import Home
from envforge.system import clock, environ

from .known import is_note
from .shop import Shop
from .suiting import cards

_ALL = 64 << 20  # bytes that are kept of one snapshot


def written(rows: Iterable[FileRow], names: AbstractSet[str]) -> tuple[str, ...]:
    """Paths of what an installer wrote for the distributions ``names``, each time otherwise, and no archive holds."""
    return tuple(row.path for row in rows if row.link is None and not names.isdisjoint(row.owners) and _is_written(row))


def _is_written(row: FileRow) -> bool:
    if all(map(is_package, row.owners)):
        return row.path.startswith(f"{conda_meta.FOLDER}/")
    return is_note(row.path) or row.path.startswith("bin/")


def hashed(prefix: Path, paths: Iterable[str]) -> dict[str, str]:
    """The sha256 of those of ``paths`` that can be read."""
    return {path: sha256 for path, sha256 in hashing.digests(prefix, paths).items() if sha256 is not None}


def told(rows: Iterable[FileRow], digests: Mapping[str, str]) -> tuple[FileRow, ...]:
    """``rows`` with a sha256 of its own for every file that ``digests`` knows: there, no RECORD tells the truth."""
    return tuple(
        row if row.link is not None or row.path not in digests else replace(row, sha256=digests[row.path])
        for row in rows
    )


def snapshot(
    shop: Shop,
    name: str,
    generation: int,
    position: int,
    *,
    state: State,
    files: tuple[FileRow, ...],
    python: str,
    engine: str,
    profile: Profile,
) -> Snapshot:
    """The value, made now and here."""
    host = machines.look(shop.home.root, software=False)
    return Snapshot(
        environment=name,
        generation=generation,
        step=position,
        step_name=None,
        made=clock.now(),
        by=environ.user(),
        machine=environ.hostname(),
        driver=host.driver,
        python=python,
        engine=engine,
        state=state,
        files=files,
        cards=cards(profile, host),
    )


def remember(home: Home, taken: Snapshot, observation: Observation, odd: Iterable[str], lock: str | None) -> None:
    """Keep ``taken``, its lock, and the bytes that no wheel gives back: of clashes, of ``odd`` paths and of those of
    nobody, the latter as far as they are small and not too many: nobody can say what lies in an environment of others.

    Raises EnvforgeError ``home-not-writable``.
    """
    name, generation = taken.environment, taken.generation
    prefix = home.prefix(name, generation)
    rows = {row.path: row for row in taken.files}
    # The bytes come first: where the snapshot exists, all that it needs does.
    for clash in observation.clashes:
        if clash.actual is not None:
            contents.keep(home, name, generation, prefix / clash.path, clash.actual)
    room = _ALL
    nobodys = (row for row in taken.files if not row.owners)
    for row in (*(rows[path] for path in odd), *nobodys):
        if row.link is None and row.sha256 is not None and row.size <= min(contents.LARGEST, room):
            contents.keep(home, name, generation, prefix / row.path, row.sha256)
            room -= row.size
    snapshots.write(home, taken, lock)
