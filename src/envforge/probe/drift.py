"""A recorded prefix against what lies there now: the snapshot is the reference, RECORD the second witness."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from envforge.model.drift import Drift, FileDrift
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution, FileRow, Observation, is_package, shown

from . import conda_meta
from .claims import Claims, declared, hexadecimal
from .hashing import of_link
from .installed import canonical, decode, read
from .records import claim

_RECORD = ".dist-info/RECORD"


def expected(prefix: Path, snapshot: Snapshot, paths: Collection[str] | None = None) -> dict[str, str | None]:
    """Recorded path -> the sha256 (hex) that it must have, None where nothing says it. ``snapshot`` with its files.

    What the snapshot says counts first, then the hash in the owner's RECORD, if that RECORD is still the one of the
    snapshot. Only of ``paths``, if given: then only the RECORDs of their owners are read. Nothing is raised.
    """
    rows = [row for row in snapshot.files if paths is None or row.path in paths]
    owners = {row.owners[0] for row in rows if row.owners and row.sha256 is None and row.link is None}
    claimed = _trusted(os.path.realpath(prefix), snapshot, owners) if owners else {}
    return {
        row.path: row.sha256 or (of_link(row.link) if row.link is not None else claimed.get(row.path)) for row in rows
    }


def _trusted(root: str, snapshot: Snapshot, owners: set[str]) -> dict[str, str | None]:
    """What the RECORDs, and the records in conda-meta, of ``owners`` declare, as far as they are as they were."""
    records = [row for row in snapshot.files if row.path.endswith(_RECORD) and row.owners]
    places = [(row, PurePosixPath(row.path).parent) for row in records]
    sites = tuple(sorted({str(folder.parent) for _, folder in places}))
    claims = Claims()
    for row, folder in places:
        for name in owners.intersection(row.owners):
            recorded = snapshot.state.get(name)
            if recorded is None or recorded.record is None or recorded.record != row.sha256:
                continue
            info = read(root, str(folder.parent), folder.name)
            if info.record is not None and hashlib.sha256(info.record).hexdigest() == recorded.record:
                claim(info, root, sites, claims)
    packages = {row.path: row for row in snapshot.files if row.path.startswith(f"{conda_meta.FOLDER}/") and row.owners}
    for path, row in packages.items() if any(map(is_package, owners)) else ():
        recorded = snapshot.state.get(row.owners[0])
        if recorded is not None and recorded.record is not None and recorded.name in owners:
            record = conda_meta.witness(root, path, recorded.record, sites)
            if record is not None:
                conda_meta.claim(record, recorded.name, claims)
    return {path: hexadecimal(declared(row)) for path, (_, row) in claims.single.items()}


def compare(prefix: Path, snapshot: Snapshot, observation: Observation, digests: Mapping[str, str | None]) -> Drift:
    """What lies in ``prefix`` now against ``snapshot`` (with its files).

    ``digests``: what `hashing.digests` found for the paths that seemed worth it. A path without one is compared by
    kind, size and link, and by the sha256 that both looks have. Bytecode in ``__pycache__`` is never compared. Nothing
    is raised.
    """
    before, after = snapshot.state, observation.state
    times = _Times(root=os.path.realpath(prefix))
    recorded = {row.path: row for row in snapshot.files if not is_bytecode(row.path)}
    now = {row.path: row for row in observation.files if not is_bytecode(row.path)}
    known = expected(prefix, snapshot, set(digests)) if digests else {}
    files = []
    for path, row in recorded.items():
        found = now.get(path)
        if found is not None:
            wanted = known.get(path, row.sha256)
            actual = digests.get(path, found.sha256)
            lost = path in observation.unreadable or (path in digests and actual is None)
            kind = "unreadable" if lost else _kind(row, found, wanted, actual)
            if kind is not None:
                owners = row.owners or found.owners
                files.append(times.drift(found, kind, owners, wanted, actual, was=row))
    files += _absent(recorded, now, observation.unreadable, times)
    files += [
        times.drift(row, "extra", row.owners, None, digests.get(path, row.sha256))
        for path, row in now.items()
        if path not in recorded
    ]
    missing, extra = before.keys() - after.keys(), after.keys() - before.keys()
    changed = {name for name in before.keys() & after.keys() if _is_another(before[name], after[name])}
    return Drift(
        before=before,
        after=after,
        missing=tuple(sorted(missing)),
        extra=tuple(sorted(extra)),
        changed=tuple(sorted(changed)),
        files=tuple(sorted(files, key=lambda each: each.path)),
        infos=dict(_infos(times.root, extra | changed)),
    )


def is_bytecode(path: str) -> bool:
    """Whether Python compiled it, and may again."""
    return path.endswith(".pyc") and "__pycache__/" in path


def _is_another(before: Distribution, after: Distribution) -> bool:
    """Whether it is not what was recorded, as far as its dist-info tells; lost files of it are told as files.

    An unchanged RECORD vouches for build and contents: what differs in them then comes from single files.
    """
    if before.version != after.version or (before.index and after.index and before.index != after.index):
        return True
    if before.record and after.record:
        return before.record != after.record
    if after.record is None and before.record:
        return False
    return before.build != after.build or bool(before.contents and after.contents and before.contents != after.contents)


def _kind(row: FileRow, found: FileRow, wanted: str | None, actual: str | None) -> str | None:
    if row.link != found.link:
        return "modified"
    if row.link is None and wanted is not None and actual is not None:
        return "modified" if wanted != actual else None
    return "modified" if row.size != found.size else None


def _absent(
    recorded: Mapping[str, FileRow], now: Mapping[str, FileRow], unreadable: Mapping[str, str], times: _Times
) -> Iterator[FileDrift]:
    """What is gone; what lies in a folder that cannot be listed is not known to be: the folder stands for it."""
    hidden: dict[str, set[str]] = {}
    for path, row in recorded.items():
        if path in now:
            continue
        veil = next((each for each in (path, *above(path)) if each in unreadable), None) if unreadable else None
        if veil is None:
            yield times.gone(row)
        elif veil == path and times.is_special(path):
            facts = times.facts(path)
            yield FileDrift(
                path=path,
                kind="modified",
                owners=row.owners,
                expected=row.sha256,
                when=facts.st_ctime_ns if facts else None,
                uid=facts.st_uid if facts else None,
            )
        else:
            hidden.setdefault(veil, set()).update(row.owners)
    for path, owners in hidden.items():
        facts = times.facts(path)
        yield FileDrift(
            path=path,
            kind="unreadable",
            owners=tuple(sorted(owners)),
            when=facts.st_ctime_ns if facts else None,
            uid=facts.st_uid if facts else None,
        )


def above(path: str) -> Iterator[str]:
    """The folders above ``path``, the nearest first, ``.`` last."""
    return map(str, PurePosixPath(path).parents)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """When something happened to a file, as far as the disk tells."""

    root: str
    folders: dict[str, os.stat_result | None] = field(default_factory=dict)

    def facts(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(f"{self.root}/{path}")
        except OSError:
            return None

    def is_special(self, path: str) -> bool:
        """Whether a socket, pipe or device has taken the place of a file: that, everybody can see."""
        facts = self.facts(path)
        return facts is not None and not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode))

    def drift(
        self,
        found: FileRow,
        kind: str,
        owners: tuple[str, ...],
        wanted: str | None,
        actual: str | None,
        *,
        was: FileRow | None = None,
    ) -> FileDrift:
        facts = self.facts(found.path)
        return FileDrift(
            path=found.path,
            kind=kind,
            owners=owners,
            expected=wanted,
            actual=actual,
            when=_changed(facts, was) if facts else None,
            uid=facts.st_uid if facts else None,
        )

    def gone(self, row: FileRow) -> FileDrift:
        """Its folder, or the nearest above it that is still there, tells when at the latest."""
        facts = next(filter(None, map(self._folder, above(row.path))), None)
        return FileDrift(
            path=row.path,
            kind="missing",
            owners=row.owners,
            expected=row.sha256,
            when=facts.st_mtime_ns if facts else None,
            uid=facts.st_uid if facts else None,
        )

    def _folder(self, path: str) -> os.stat_result | None:
        if path not in self.folders:
            self.folders[path] = self.facts(path)
        return self.folders[path]


def _changed(facts: os.stat_result, was: FileRow | None) -> int:
    """The ctime, which nobody can put back, but for a file written in place: other links to it move that later."""
    written = was is not None and facts.st_ino == was.inode and was.mtime < facts.st_mtime_ns <= facts.st_ctime_ns
    return facts.st_mtime_ns if written else facts.st_ctime_ns


def _infos(root: str, names: Iterable[str]) -> Iterator[tuple[str, tuple[int, int, str | None]]]:
    """The dist-info of each of ``names`` by the name of its folder: when it was filled, whose it is, INSTALLER.

    Of a conda package the same of its record.
    """
    wanted = set(names)
    for file in sorted(Path(root, conda_meta.FOLDER).glob("*.json")) if any(map(is_package, wanted)) else ():
        key = next((name for name in wanted if is_package(name) and file.stem.rsplit("-", 2)[0] == shown(name)), None)
        if key is not None:
            try:
                facts = file.lstat()
            except OSError:
                continue
            yield key, (facts.st_mtime_ns, facts.st_uid, "conda")
    for folder in sorted(Path(root).glob("lib*/python*/site-packages/*.dist-info")) if wanted else ():
        name = canonical(folder.name.partition("-")[0])
        if name in wanted:
            try:
                facts = folder.lstat()
            except OSError:
                continue
            yield name, (facts.st_mtime_ns, facts.st_uid, _installer(folder))


def _installer(folder: Path) -> str | None:
    try:
        descriptor = os.open(folder / "INSTALLER", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
            return decode(stream.read()).strip() or None
    except OSError:
        return None
