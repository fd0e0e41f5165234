"""Two moments of prefixes, file by file: by what is recorded of them, and by their bytes where that does not tell."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from envforge.model.snapshot import Snapshot
from envforge.model.state import FileRow, Observation, shown
from envforge.model.views import FileChange, FileFacts

from .contents import without_start
from .drift import above, expected, is_bytecode
from .hashing import digests
from .prefix import changed
from .records import is_installers

_SITE = re.compile(r"lib(?:64)?/(?:python|pypy)[^/]*/site-packages/")
_COMMON = "site-packages/"
# What makes a venv a venv, and what its making writes under the folder's own name.
_OF_THE_VENV = re.compile(r"pyvenv\.cfg|bin/(?:[Aa]ctivate|deactivate|pydoc\.bat)[^/]*")
# When conda packages came, and what they hold in this prefix; the variables beside that are the profile's.
_OF_CONDA = re.compile(r"conda-meta/(?:history|[^/]+\.json)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One moment of the generation that lies, or lay, in ``prefix``.

    ``rows``: path -> row, without bytecode; ``fresh``: those of them that are not as ``snapshot`` (the last recorded,
    None where none is) has them. ``unreadable``: paths below which not all was seen.
    """

    prefix: Path
    snapshot: Snapshot | None
    rows: Mapping[str, FileRow]
    fresh: frozenset[str] = frozenset()
    unreadable: Collection[str] = ()

    @classmethod
    def recorded(cls, prefix: Path, snapshot: Snapshot) -> Self:
        """What ``snapshot`` (with its files) holds."""
        rows = {row.path: row for row in snapshot.files if not is_bytecode(row.path)}
        return cls(prefix=prefix, snapshot=snapshot, rows=rows)

    @classmethod
    def present(cls, prefix: Path, snapshot: Snapshot | None, observation: Observation) -> Self:
        """What a look found; a file that looks as it was last recorded is taken for that."""
        known = {row.path: row for row in snapshot.files} if snapshot is not None else {}
        rows, fresh = {}, set()
        for row in observation.files:
            if is_bytecode(row.path):
                continue
            was = known.get(row.path)
            if was is not None and _as_it_was(row, was):
                rows[row.path] = was
            else:
                rows[row.path] = row
                fresh.add(row.path)
        unreadable = observation.unreadable
        return cls(prefix=prefix, snapshot=snapshot, rows=rows, fresh=frozenset(fresh), unreadable=unreadable)

    def contents(self, row: FileRow) -> str | None:
        """The digest of all that the one owner of a recorded ``row`` brought; None where that does not vouch for it."""
        if self.snapshot is None or row.sha256 is not None or len(row.owners) != 1 or row.path in self.fresh:
            return None
        owner = self.snapshot.state.get(row.owners[0])
        return owner.contents if owner is not None and not is_installers(row.path) else None

    def hashes(self, paths: Collection[str]) -> dict[str, str | None]:
        """The sha256 of each of ``paths``: as recorded, else of what lies there, if that is still the same file."""
        found: dict[str, str | None] = dict.fromkeys(paths)
        recorded = found.keys() - self.fresh
        if self.snapshot is not None and recorded:
            found.update(expected(self.prefix, self.snapshot, recorded))
        unknown = [path for path, sha256 in found.items() if sha256 is None]
        return found | digests(self.prefix, self.still_there(unknown))

    def still_there(self, paths: Iterable[str]) -> list[str]:
        """Those of ``paths`` whose file lies in the prefix as its row says."""
        wanted = list(paths)
        gone = set(changed(self.prefix, (self.rows[path] for path in wanted)))
        return [path for path in wanted if path not in gone]

    def body(self, path: str) -> bytes | None:
        """A file without what names its prefix: its first line and every mention; None if it is not there any more."""
        if not self.still_there([path]):
            return None
        try:
            data = (self.prefix / path).read_bytes()
        except OSError:
            return None
        names = {os.fsencode(self.prefix), os.fsencode(os.path.realpath(self.prefix))}
        body = without_start(data)
        for name in sorted(names, key=len, reverse=True):
            # In a binary, conda fills up with zeros what a shorter path leaves of its place.
            body = re.sub(re.escape(name) + rb"([^\0\n]*)\0+", rb"\1\0", body).replace(name, b"")
        return body


def _as_it_was(now: FileRow, was: FileRow) -> bool:
    told = now.sha256 is None or was.sha256 is None or now.sha256 == was.sha256
    return told and _same_file(now, was)


def _same_file(one: FileRow, other: FileRow) -> bool:
    return (one.inode, one.size, one.mtime) == (other.inode, other.size, other.mtime) and one.link == other.link


def compare(before: Side, after: Side) -> tuple[FileChange, ...]:
    """Every file that only one side has, or that differs, or of which nothing tells whether it does; sorted by path.

    Of one prefix every file counts but bytecode. Of two, every site-packages is one place, and what installers and the
    making of a venv write is left out; a file outside of site-packages counts without its first line and without the
    path of the prefix. One inode with the same size and mtime is one file. Nothing is raised.
    """
    exact = before.prefix == after.prefix
    old, new = _keyed(before, exact=exact), _keyed(after, exact=exact)
    found = [_lone(row, "removed", after) for key, row in old.items() if key not in new]
    found += [_lone(row, "added", before) for key, row in new.items() if key not in old]
    undecided: list[_Pair] = []
    for key, was in old.items():
        now = new.get(key)
        if now is None or _same_file(was, now):
            continue
        # Only what lies outside of site-packages may name its prefix.
        pair = _Pair(was=was, now=now, loose=not exact and not key.startswith(_COMMON))
        same = _by_record(pair, before, after)
        if same is None:
            undecided.append(pair)
        elif not same:
            found.append(_change("changed", was, now, was.sha256, now.sha256))
    found += _by_bytes(undecided, before, after)
    return tuple(sorted(found, key=lambda each: each.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One place on both sides; ``loose``: it counts without what names its prefix."""

    was: FileRow
    now: FileRow
    loose: bool


def _keyed(side: Side, *, exact: bool) -> Mapping[str, FileRow]:
    if exact:
        return side.rows
    return {
        _SITE.sub(_COMMON, path, count=1): row
        for path, row in side.rows.items()
        if not is_installers(path)
        and not _OF_CONDA.fullmatch(path)
        and not (not row.owners and _OF_THE_VENV.fullmatch(path))
    }


def _lone(row: FileRow, kind: str, other: Side) -> FileChange:
    """What one side has and ``other`` has not, unless it lies where nothing could be seen."""
    facts = FileFacts(size=row.size, sha256=row.sha256)
    before, after = (facts, None) if kind == "removed" else (None, facts)
    if other.unreadable and any(each in other.unreadable for each in (row.path, *above(row.path))):
        kind = "unknown"
    return FileChange(path=row.path, kind=kind, owners=_called(row.owners), before=before, after=after)


def _called(owners: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(shown, owners))


def _by_record(pair: _Pair, before: Side, after: Side) -> bool | None:
    """Whether both are the same, by what is recorded; None where that does not tell."""
    was, now = pair.was, pair.now
    if was.link is not None or now.link is not None:
        return was.link == now.link
    if was.size != now.size and not pair.loose:
        return False
    contents = before.contents(was)
    if contents is not None and contents == after.contents(now):
        return True
    if was.sha256 is None or now.sha256 is None:
        return None
    # Other bytes of what may name its prefix need not differ otherwise.
    return was.sha256 == now.sha256 or (None if pair.loose else False)


def _by_bytes(pairs: list[_Pair], before: Side, after: Side) -> Iterator[FileChange]:
    old, new = before.hashes({each.was.path for each in pairs}), after.hashes({each.now.path for each in pairs})
    for each in pairs:
        first, second = old[each.was.path], new[each.now.path]
        known = first is not None and second is not None
        if known and first == second:
            continue
        if each.loose:
            one, other = before.body(each.was.path), after.body(each.now.path)
            known = one is not None and other is not None
            if known and one == other:
                continue
        yield _change("changed" if known else "unknown", each.was, each.now, first, second)


def _change(kind: str, was: FileRow, now: FileRow, first: str | None, second: str | None) -> FileChange:
    return FileChange(
        path=now.path,
        kind=kind,
        owners=_called(now.owners or was.owners),
        before=FileFacts(size=was.size, sha256=first),
        after=FileFacts(size=now.size, sha256=second),
    )
