"""What an environment holds: distributions, files, and what looking at them showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a distribution came from that no index has as a wheel.

    ``kind``: sdist, git, path, python (shipped with the interpreter), conda (a conda package brought it: ``package`` is
    its name). ``url`` has no credentials. ``sha256`` is the sdist's or archive's, ``commit`` a Git object id.
    """

    kind: str
    url: str | None = None
    sha256: str | None = None
    commit: str | None = None
    package: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One installed (or predicted) distribution, or conda package.

    ``name`` is canonical (PEP 503), ``version`` full, local part included. ``build`` is the wheel's build tag.
    ``index`` is the name of the index that served ``file``; ``sha256`` and ``size`` (bytes) are of that file, ``url``
    is where it was found: a hint, without credentials or mirror.
    ``contents``: digest of what was installed, free of prefix and installer; ``record``: sha256 of RECORD as it lies
    there; both None while only predicted. ``requires``: raw ``Requires-Dist`` lines. ``installer``: INSTALLER.

    Of a conda package ``name`` is `package_key`, ``version`` and ``build`` as its channel writes them, ``index`` the
    channel's name, ``record`` the sha256 of its file in conda-meta; ``requires`` is empty. ``repodata``: what its
    channel says of it, as JSON, which is all that is needed to install it.
    """

    name: str
    version: str
    build: str | None = None
    index: str | None = None
    file: str | None = None
    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    requested: bool = False
    contents: str | None = None
    record: str | None = None
    installer: str | None = None
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    origin: Origin | None = None
    repodata: str | None = None


State = Mapping[str, Distribution]
"""Canonical name (`package_key` of a conda package) -> what is installed."""

_CONDA = "conda:"


def package_key(name: str) -> str:
    """The key of the conda package ``name``, which is another thing than the distribution of that name."""
    return f"{_CONDA}{name}"


def is_package(name: str) -> bool:
    """Whether a key of a state is a conda package's."""
    return name.startswith(_CONDA)


def shown(name: str) -> str:
    """A key as people call it."""
    return name.removeprefix(_CONDA)


def bringer(item: Distribution | None) -> str | None:
    """The key of the conda package that brought a distribution; None for what came otherwise, or is absent."""
    origin = item.origin if item is not None else None
    return package_key(origin.package) if origin is not None and origin.package is not None else None


def distributions(state: State) -> State:
    """``state`` without conda packages."""
    return {name: item for name, item in state.items() if not is_package(name)}


def packages(state: State) -> State:
    """The conda packages of ``state``."""
    return {name: item for name, item in state.items() if is_package(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file of the prefix. ``path`` is POSIX, relative to the prefix; ``size`` bytes; ``mtime`` nanoseconds.

    ``sha256`` (hex) only where no RECORD gives a hash or tells the truth, or more than one distribution owns the path.
    ``owners``: canonical names; empty = nobody. ``link``: target, for a symlink.
    """

    path: str
    size: int
    mtime: int
    inode: int
    sha256: str | None = None
    owners: tuple[str, ...] = ()
    link: str | None = None


# A frozen dataclass sets each field by a call of `object.__setattr__`; the setters of its slots do the same in less
# than half the time, which a table of 90,000 rows feels.
_new = FileRow.__new__
_path, _size, _mtime, _inode, _sha256, _owners, _link = (
    FileRow.__dict__[slot.name].__set__ for slot in fields(FileRow)
)


def file_row(  # noqa: PLR0917 - by position, for the same reason
    path: str, size: int, mtime: int, inode: int, sha256: str | None, owners: tuple[str, ...], link: str | None
) -> FileRow:
    """A `FileRow`, for who makes very many."""
    row = _new(FileRow)
    _path(row, path)
    _size(row, size)
    _mtime(row, mtime)
    _inode(row, inode)
    _sha256(row, sha256)
    _owners(row, owners)
    _link(row, link)
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """One path with two owners. ``declared``: owner -> the sha256 (hex) that its RECORD gives, or None.

    ``actual``: sha256 of what lies there, None if absent. Equal declared hashes are no clash.
    """

    path: str
    declared: Mapping[str, str | None]
    actual: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Debris:
    """Something broken in site-packages. ``kind``: ``record-missing`` (RECORD, METADATA; without ``missing`` a file in
    conda-meta that is no record), ``leftover`` (``~name``), or ``outside``: a RECORD with ``rows`` that leave the
    prefix.
    """

    kind: str
    name: str
    path: str
    missing: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at a prefix: nothing of it was run or imported, nothing written."""

    state: State
    files: tuple[FileRow, ...] = ()
    clashes: tuple[Clash, ...] = ()
    debris: tuple[Debris, ...] = ()
    bytes: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)
