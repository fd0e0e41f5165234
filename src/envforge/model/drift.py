"""Recorded against actual: what an audit compares, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .machine import Ambient
from .plan import Change
from .state import Distribution

Stamp = tuple[int, int, int, int]
"""What a file looked like: size (bytes), mtime, ctime (nanoseconds), inode. Nobody can put a ctime back."""

Seen = Mapping[str, Stamp]
"""Path (POSIX, relative to the prefix) -> what it looked like when its bytes were last known to be right."""


Launch = Mapping[str, str]
"""Path (POSIX, relative to the prefix) of what decides which modules Python finds -> what it looked like: size, mtime,
inode in a text, empty where only being there counts. What else a backend keeps at the top is one more path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDrift:
    """One file that is not as recorded. ``kind``: missing, modified, extra, unreadable (a file, or a folder that hides
    recorded files).

    ``owners``: canonical names, empty = nobody. ``expected`` and ``actual``: sha256 (hex; of a symlink see
    `probe.hashing`), None where not known.
    ``when``: nanoseconds since 1970 of the change as far as file times tell (for what is gone, when its folder last
    changed: it was gone by then); ``uid``: who owns the file now (or the folder).
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
    """``missing``, ``extra``, ``changed``: canonical names, by the dist-info folders, sorted.

    ``before``: as recorded, ``after``: as found. ``files``: what differs, sorted by path, those of missing, extra and
    changed distributions among them.
    ``infos``: canonical name -> (nanoseconds since 1970, uid, INSTALLER) of the dist-info of each extra or changed one.
    """

    before: Mapping[str, Distribution]
    after: Mapping[str, Distribution]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    files: tuple[FileDrift, ...] = ()
    infos: Mapping[str, tuple[int, int, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What leaks into an environment from the host, and code in it that nobody owns.

    ``system_site``: pyvenv.cfg lets the packages of the base Python in. ``user_site``: the user's site-packages for
    this Python, None unless Python would look there and it holds something; ``shadowed``: canonical names of the
    distributions that both hold. ``pythonpath``: its entries; ``libraries``: LD_LIBRARY_PATH, LD_PRELOAD and LD_AUDIT
    as far as they are set; ``proxies``: variables that say ``socks://``; ``ambient``: what the
    host says to pip, uv and conda, and what else to Python. ``unowned``: paths relative to the prefix. ``moved_from``:
    where the environment lay when ``stranded``, scripts that start the Python there, were written; None = here.
    """

    system_site: bool = False
    user_site: str | None = None
    shadowed: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    proxies: tuple[str, ...] = ()
    ambient: tuple[Ambient, ...] = ()
    unowned: tuple[str, ...] = ()
    moved_from: str | None = None
    stranded: tuple[str, ...] = ()


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
    """``profile``: its name. ``outdated``: where the profile file has moved on since (no drift). ``processes``: ``PID
    argv`` of those that run from the environment.

    Of an environment that envforge does not keep, ``environment`` is the path and ``generation`` None; ``unknown``:
    guards that nobody can judge there, each with the reason.
    """

    environment: str
    profile: str
    generation: int | None
    deep: bool
    checked: Checked
    events: tuple[DriftEvent, ...] = ()
    outdated: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audits:
    """Of all environments that have a generation in use, by name."""

    environments: tuple[Audit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A rollback: from which generation to which; ``before`` None = none was in use.

    ``built``: ``after`` had to be built, of ``snapshot``; it is 0 where its plan was refused. ``switched``: the
    environment now is ``after``. ``changes``: what the records of ``after`` hold otherwise than those of ``before``.
    """

    environment: str
    before: int | None
    after: int
    snapshot: str | None
    built: bool
    seconds: float
    switched: bool = True
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReproducible:
    """What a fresh build would not bring to where it is now.

    ``distributions``: ``NAME VERSION`` of those whose file no lock knows; ``removed``: of those that a build brings
    back. ``files``: paths with other bytes than a build gives them, ``unowned``: paths of nobody that no build makes.
    """

    distributions: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unowned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """``snapshot``: its id, None where nothing was written: nothing had drifted, or a finding stands in the way.

    ``changes``: of distributions, against the last snapshot; ``files``: how many others are not as they were.
    """

    environment: str
    generation: int
    snapshot: str | None
    changes: tuple[Change, ...] = ()
    files: int = 0
    not_reproducible: NotReproducible = field(default_factory=NotReproducible)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """``path``: the real one, where it stays. ``backend`` and ``python``: what it is, whatever the profile says."""

    environment: str
    generation: int
    snapshot: str
    path: str
    profile: str
    backend: str
    python: str
    checked: Checked
