"""What a repair would do to a prefix, and what it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """One file to bring back as it was recorded. ``path``: POSIX, relative to the prefix.

    ``source``: ``wheel`` or ``package`` (of one of ``owners``, keys of a state), ``kept`` (its bytes are kept in the
    records under ``sha256``) or ``link`` (a symlink to ``link``). ``sha256`` (hex): None where only the wheel's own
    RECORD, or the package's record, knows.
    """

    path: str
    source: str
    owners: tuple[str, ...] = ()
    sha256: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What cannot be put right in place. ``subject``: a canonical name or a path."""

    subject: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """``files`` to bring back; ``doubted``: files that are there, to be brought back unless they prove right, since
    their RECORD is not as it was; ``remove``: files and folders to delete, since a wheel brought them or an installer
    left them; ``aside``: what no wheel holds, so that it is moved away and kept; ``lost``: see `Lost`.
    """

    files: tuple[Restoration, ...] = ()
    doubted: tuple[Restoration, ...] = ()
    remove: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do in the prefix."""
        return not (self.files or self.doubted or self.remove or self.aside)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairAction:
    """``action``: ``reinstall`` (a distribution that is gone or another), ``restore`` (files of one), ``remove`` (a
    distribution that was not recorded, or what an installer left), ``set-aside`` (code that nobody owns).

    ``subject``: canonical name, or path where nobody owns it; ``version``: of what is brought back or removed;
    ``files``: how many of them.
    """

    action: str
    subject: str
    files: int
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """``actions``: done, or (``dry_run``) to do. ``evicted``: canonical names of which the cache held damaged copies.

    ``shared``: ``ENV/G`` of other generations that hold the same damaged files by hard link.
    ``aside``: the folder that holds what was moved away, None where nothing was. ``seconds``: without the audits.
    """

    environment: str
    generation: int
    dry_run: bool
    actions: tuple[RepairAction, ...] = ()
    lost: tuple[Lost, ...] = ()
    evicted: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    aside: str | None = None
    seconds: float = 0.0
