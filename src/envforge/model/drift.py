"""Recorded against actual: what an audit compares, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .state import Distribution

Stamp = tuple[int, int, int, int]
"""What a file looked like: size (bytes), mtime, ctime (nanoseconds), inode. Nobody can put a ctime back."""

Seen = Mapping[str, Stamp]
"""Path (POSIX, relative to the prefix) -> what it looked like when its bytes were last known to be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDrift:
    """One file that is not as recorded. ``kind``: missing, modified, extra, unreadable.

    ``owners``: canonical names, empty = nobody. ``expected`` and ``actual``: sha256 (hex), None where not known.
    ``when``: nanoseconds since 1970 of the change as far as file times tell (of the folder, for what is gone);
    ``uid``: who owns the file now (or the folder).
    """

    path: str
    kind: str
    owners: tuple[str, ...] = ()
    expected: str | None = None
    actual: str | None = None
    when: int | None = None
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """``missing``, ``extra``, ``changed``: canonical names, by the dist-info folders.

    ``before``: as recorded, ``after``: as found. ``files``: what differs, sorted by path, those of missing and extra
    distributions among them.
    ``infos``: canonical name -> (when, uid, INSTALLER) of the dist-info that lies there now.
    """

    before: Mapping[str, Distribution]
    after: Mapping[str, Distribution]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    files: tuple[FileDrift, ...] = ()
    infos: Mapping[str, tuple[int, int, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftEvent:
    """What seems to have happened at once. ``first`` and ``last``: ISO 8601 in UTC, None where no time is known.

    ``by``: user name, ``installer``: what INSTALLER says, None where not known. ``text``: the whole in a sentence.
    """

    text: str
    distributions: tuple[str, ...]
    files: int
    first: str | None = None
    last: str | None = None
    by: str | None = None
    installer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How much was looked at; ``bytes``: of files whose content was hashed in this audit."""

    distributions: int
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``profile``: its name, None for an environment without one. ``outdated``: where the profile file has moved on
    since (no drift). ``processes``: ``PID argv`` of those that run from the environment.
    """

    environment: str
    profile: str | None
    generation: int
    deep: bool
    checked: Checked
    events: tuple[DriftEvent, ...] = ()
    outdated: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """One act of a repair: reinstall, install, remove (a distribution), restore-file, remove-file (a path)."""

    act: str
    subject: str
    because: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """``acts``: what was done, or with ``dry_run`` would be; ``left``: what no repair in place clears, with why.

    ``evicted``: distributions whose poisoned copy was taken out of the cache; ``audit``: what it said afterwards.
    """

    environment: str
    generation: int
    dry_run: bool
    acts: tuple[Mend, ...]
    left: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    audit: Audit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A rollback: from which generation to which; ``built``: the target had to be built, it did not exist."""

    environment: str
    before: int | None
    after: int
    snapshot: str | None
    built: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """``snapshot``: id of the new snapshot; ``not_reproducible``: what a fresh build would not bring, with why."""

    environment: str
    snapshot: str
    changes: int
    not_reproducible: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    environment: str
    generation: int
    sealed: bool
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """``generations``: ``NAME/G``, removed (or would be); ``bytes``: freed; ``lost``: no longer restorable offline."""

    dry_run: bool
    generations: tuple[str, ...]
    cached: int
    bytes: int
    lost: tuple[str, ...] = ()
