"""Processes inside an environment: the variables that they get, and what they did to files that it shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.profile import Profile
from envforge.model.progress import Listener
from envforge.model.state import FileRow
from envforge.probe import prefix as prefixes
from envforge.store import snapshots
from envforge.store.layout import Home, models_for
from envforge.system import environ

from .activating import activated

MODELS = "ENVFORGE_MODELS"
"""The variable that says where models lie to whatever runs in an environment."""


def variables(prefix: Path, profile: Profile, tell: Listener, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The clean environment with the generation at ``prefix`` activated, the profile's variables and ``extra``.

    ``prefix``: as the home has it, ``generations/NAME/G``, where an adopted one is a symlink.
    """
    given = {**profile.variables, **(extra or {})}
    models = models_for(prefix)
    base = environ.hermetic({MODELS: str(models)} if models is not None else None)
    return activated(base, prefix, prefix.parent.name, given, tell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisoned:
    """Files that were written in place though other environments and the cache share them by hard link.

    ``owners``: distributions whose files they are; ``environments``: ``NAME/G`` of the others that hold them too.
    """

    paths: tuple[str, ...]
    owners: tuple[str, ...]
    environments: tuple[str, ...]


def poisoned(home: Home, name: str, generation: int, rows: Iterable[FileRow]) -> Poisoned | None:
    """Which of ``rows`` (as of the last snapshot) changed in place while linked elsewhere; None if none did."""
    prefix = home.prefix(name, generation)
    known = {row.path: row for row in rows}
    hit: list[FileRow] = []
    for path in prefixes.changed(prefix, known.values()):
        try:
            now = (prefix / path).lstat()
        except OSError:
            continue  # deleted: that unlinks, the others keep theirs
        if now.st_nlink > 1 and now.st_ino == known[path].inode:
            hit.append(known[path])
    if not hit:
        return None
    inodes = {row.inode for row in hit}
    sharing = []
    for other in home.environments():
        for number in home.generations(other):
            if (other, number) == (name, generation):
                continue
            try:
                snapshot = snapshots.latest(home, other, number, files=True)
            except EnvforgeError:
                continue  # what its records cannot tell, its own audit will
            if snapshot is not None and any(row.inode in inodes for row in snapshot.files):
                sharing.append(f"{other}/{number}")
    return Poisoned(
        paths=tuple(row.path for row in hit),
        owners=tuple(sorted({owner for row in hit for owner in row.owners})),
        environments=tuple(sharing),
    )
