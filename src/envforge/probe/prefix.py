"""A fast and honest look at a prefix without running it: distributions, files, who owns what twice, debris."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envforge.model.state import (
    Clash,
    Debris,
    Distribution,
    FileRow,
    Observation,
    Origin,
    is_package,
    package_key,
    shown,
)
from envforge.system.memory import uncollected

from . import conda_meta, hashing
from .claims import Claims, declared, hexadecimal
from .contents import Contents
from .installed import Info, is_info, read
from .records import claim
from .sites import names as entries
from .sites import sites as found_sites
from .walk import Tree, walk


def look(prefix: Path) -> Observation:
    """What lies in ``prefix`` (a venv; a symlink to one is resolved).

    ``files`` is sorted by path and holds all but the bytecode that no RECORD hashes. What cannot be read stands in
    ``unreadable``; rows of a RECORD that leave the prefix are debris, and not followed. An empty or missing prefix
    holds nothing; nothing is raised.
    """
    with uncollected():
        return _look(os.path.realpath(prefix))


def _look(root: str) -> Observation:
    sites = tuple(found_sites(root))
    claims = Claims()
    debris: list[Debris] = []
    unreadable: dict[str, str] = {}
    found: list[tuple[Info, Contents | None, conda_meta.Record | None]] = []
    records = _records(root, sites, claims, unreadable, debris)
    for info in _chosen(list(_infos(root, sites, debris)), debris):
        unreadable.update({f"{info.path}/{file}".rstrip("/"): why for file, why in info.unreadable})
        bringer = _bringer(info, claims)
        if bringer is not None:
            # conda-meta vouches for its files, and tells the truth where the RECORD in a conda package may not.
            found.append((info, None, records[bringer]))
            continue
        if info.missing:
            debris.append(Debris(kind="record-missing", name=info.name, path=info.path, missing=info.missing))
        found.append((info, claim(info, root, sites, claims), None))
    for name, rows in claims.outside.items():
        path = records[name].path if name in records else next(info.path for info, *_ in found if info.name == name)
        debris.append(Debris(kind="outside", name=shown(name), path=path, rows=tuple(rows)))
    tree = walk(root, claims)
    state = {key: _package(key, record, tree) for key, record in records.items()}
    state |= {info.name: _distribution(info, contents, record, tree) for info, contents, record in found}
    files = tree.files()
    clashes = tuple(clash for path, rivals in sorted(claims.rivals().items()) if (clash := _clash(path, rivals, tree)))
    return Observation(
        state=dict(sorted(state.items())),
        files=files,
        clashes=clashes,
        debris=tuple(sorted(debris, key=lambda item: (item.path, item.kind))),
        bytes=sum(row.size for row in files),
        unreadable={**tree.unreadable, **unreadable},
    )


def _records(
    root: str, sites: tuple[str, ...], claims: Claims, unreadable: dict[str, str], debris: list[Debris]
) -> dict[str, conda_meta.Record]:
    """Key -> what conda-meta says of the package, its files claimed."""
    broken: list[str] = []
    records: dict[str, conda_meta.Record] = {}
    for record in conda_meta.read(root, sites, unreadable, broken):
        key = package_key(record.name)
        if key not in records:
            records[key] = record
            continue
        lesser, records[key] = sorted((records[key], record), key=lambda each: _whole(root, each))
        debris.append(Debris(kind="leftover", name=lesser.name, path=lesser.path))
    for path in broken:
        name = path.rpartition("/")[2].removesuffix(".json").rsplit("-", 2)[0]
        debris.append(Debris(kind="record-missing", name=name, path=path))
    for key, record in records.items():
        conda_meta.claim(record, key, claims)
    return records


def _whole(root: str, record: conda_meta.Record) -> tuple[bool, int]:
    """How much speaks for one of two records of a package: its name, and how many of its files are there."""
    named = record.path.endswith(f"/{record.name}-{record.version}-{record.build}.json")
    return named, sum(os.path.lexists(f"{root}/{path}") for path in record.files if "\0" not in path)


def _bringer(info: Info, claims: Claims) -> str | None:
    """The key of the conda package that brought a distribution; None where pip or uv put it there, or over conda's."""
    for path in (f"{info.path}/METADATA", f"{info.path}/PKG-INFO", info.path):
        if path in claims.single:
            owner = claims.single[path][0][0]
            return owner if is_package(owner) and info.installer in {"conda", None} else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A distribution and its files: path in the prefix -> the hash as a RECORD writes it, empty if none."""

    info: Info
    files: Mapping[str, str]


def owned(prefix: Path) -> tuple[Owned, ...]:
    """Every distribution of ``prefix`` with what is said to be its own, by name; no file of theirs is looked at.

    What leaves the prefix is left out, and so is bytecode that nobody hashed.
    """
    with uncollected():
        root = os.path.realpath(prefix)
        sites = tuple(found_sites(root))
        claims = Claims()
        _records(root, sites, claims, {}, [])
        brought = {info.name: (info, _bringer(info, claims)) for info in _chosen(list(_infos(root, sites, [])), [])}
        for info, bringer in brought.values():
            if bringer is None:
                claim(info, root, sites, claims)
        files: dict[str, dict[str, str]] = {}
        for path, (owner, row) in claims.single.items():
            files.setdefault(owner[0], {})[path] = declared(row)
        for path, rows in claims.shared.items():
            for name, said in rows.items():
                files.setdefault(name, {})[path] = said
        return tuple(
            Owned(info=info, files=files.get(bringer or name, {})) for name, (info, bringer) in sorted(brought.items())
        )


def changed(prefix: Path, rows: Iterable[FileRow]) -> tuple[str, ...]:
    """The paths of ``rows``, in their order, whose size, mtime or inode differ now or that are gone."""
    root = os.path.realpath(prefix)
    return tuple(row.path for row in rows if _differs(f"{root}/{row.path}", row))


def damaged(prefix: Path, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Those of the distributions ``names`` whose files are not what their RECORD says -> the paths, sorted.

    Every file of theirs is hashed that they own alone, or with others that declare the same bytes: then it is told of
    each. Left out is what differs in clean environments: bytecode, which compiling rewrites, and rows that a RECORD
    cannot vouch for (see `_vouches`).
    """
    if not names:
        return {}
    root = os.path.realpath(prefix)
    sites = tuple(found_sites(root))
    claims = Claims()
    _records(root, sites, claims, {}, [])
    infos = {info.name: info for info in _chosen(list(_infos(root, sites, [])), []) if _bringer(info, claims) is None}
    for info in infos.values():
        claim(info, root, sites, claims)
    wanted: dict[str, tuple[tuple[str, ...], str]] = {
        path: (owner, digest)
        for path, (owner, row) in claims.single.items()
        if owner[0] in names
        and _vouches(infos.get(owner[0]), path)
        and (digest := hexadecimal(declared(row))) is not None
    }
    for path, rows in claims.shared.items():
        owners = tuple(sorted(rows.keys() & names))
        said = {hexadecimal(row) for row in rows.values()}
        digest = said.pop() if len(said) == 1 else None
        if digest is not None and owners and all(_vouches(infos.get(owner), path) for owner in rows):
            wanted[path] = (owners, digest)
    found: dict[str, list[str]] = {}
    actual = hashing.digests(prefix, wanted)
    for path, (owners, digest) in sorted(wanted.items()):
        if actual[path] != digest:
            for name in owners:
                found.setdefault(name, []).append(path)
    return {name: tuple(paths) for name, paths in found.items()}


def _vouches(info: Info | None, path: str) -> bool:
    """Whether the RECORD of a clean installation tells the truth of ``path``; conda-meta (None) always does.

    Some wheels list files of another's dist-info, which no installer puts there; conda writes scripts of its own
    outside of site-packages.
    """
    if path.endswith(".pyc"):
        return False
    if info is None:
        return True
    if not path.startswith(f"{info.site}/"):
        return info.installer != "conda"
    return ".dist-info/" not in path or path.startswith(f"{info.path}/")


def _differs(path: str, row: FileRow) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return True
    return (facts.st_size, facts.st_mtime_ns, facts.st_ino) != (row.size, row.mtime, row.inode)


def _infos(root: str, sites: Iterable[str], debris: list[Debris]) -> Iterator[Info]:
    for site in sites:
        for name in entries(f"{root}/{site}"):
            if name.startswith("~"):
                debris.append(Debris(kind="leftover", name=name, path=f"{site}/{name}"))
            elif is_info(name):
                yield read(root, site, name)


def _chosen(infos: list[Info], debris: list[Debris]) -> Iterator[Info]:
    """One for each name: of two metadata folders of one distribution the lesser is what an interruption left."""
    best: dict[str, Info] = {}
    for info in infos:
        other = best.get(info.name)
        if other is None:
            best[info.name] = info
            continue
        lesser, best[info.name] = sorted((other, info), key=_rank)
        debris.append(Debris(kind="leftover", name=lesser.name, path=lesser.path, missing=lesser.missing))
    yield from best.values()


def _rank(info: Info) -> tuple[bool, object, bool]:
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - needed only where an environment is broken

    try:
        return (not info.missing, Version(info.version), info.agrees)
    except InvalidVersion:
        return (False, Version("0"), info.agrees)


def _package(key: str, record: conda_meta.Record, tree: Tree) -> Distribution:
    return Distribution(
        name=key,
        version=record.version,
        build=record.build,
        file=record.file,
        url=record.url,
        sha256=record.sha256,
        size=record.size,
        requested=record.requested,
        contents=record.contents,
        record=tree.sha256(record.path),
        installer="conda",
        repodata=record.repodata,
    )


def _distribution(info: Info, contents: Contents | None, package: conda_meta.Record | None, tree: Tree) -> Distribution:
    record = None if info.legacy or info.record is None else tree.sha256(f"{info.path}/RECORD")
    digest = contents.digest(tree) if contents is not None and info.record is not None else None
    return Distribution(
        name=info.name,
        version=info.version,
        build=info.build,
        requested=info.requested,
        contents=package.contents if package is not None else digest,
        record=record,
        installer=info.installer,
        requires=info.requires,
        requires_python=info.requires_python,
        origin=Origin(kind="conda", package=package.name) if package is not None else None,
    )


def _clash(path: str, rivals: Mapping[str, str], tree: Tree) -> Clash | None:
    """Two owners that declare different bytes, or one that declares none of what the other declares and lies there.

    Owners that agree are no clash even where the bytes are others: that is a modified file.
    """
    declared = {name: hexadecimal(value) for name, value in sorted(rivals.items())}
    wanted = set(declared.values())
    hashes = wanted - {None}
    actual = tree.sha256(path)
    overwritten = len(hashes) == 1 and None in wanted and actual is not None and actual not in hashes
    return Clash(path=path, declared=declared, actual=actual) if len(hashes) > 1 or overwritten else None
