"""Every file of a prefix by one recursive listing; no symlink is followed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import FileIO

from envforge.model.state import FileRow, file_row

from .claims import Claims

_KIND = 0o170000  # the bits that `stat.S_IFMT` keeps
_NOBODY: tuple[tuple[str, ...], str] = ((), ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What a walk found: ``rows`` by path, without digests; ``undeclared``: those whose bytes no single RECORD hashes.

    ``unreadable``: relative path -> why.
    """

    root: str
    rows: dict[str, FileRow] = field(default_factory=dict)
    undeclared: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)

    def sha256(self, path: str) -> str | None:
        """The digest (hex) of a regular file of the tree, None where there is none or it cannot be read."""
        if path not in self.digests:
            self.digests[path] = self._hash(path)
        return self.digests[path]

    def open(self, path: str) -> FileIO | None:
        """A regular file of the tree to read from; None where there is none or (told) it cannot be read."""
        row = self.rows.get(path)
        if row is None or row.link is not None:
            return None
        try:
            # Should a pipe or a symlink have taken its place meanwhile: neither wait for it nor follow it.
            descriptor = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            return FileIO(descriptor)
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return None

    def _hash(self, path: str) -> str | None:
        stream = self.open(path)
        if stream is None:
            return None
        try:
            with stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return None

    def files(self) -> tuple[FileRow, ...]:
        """All rows by path, with the digests that no RECORD gives."""
        rows = self.rows
        digests = {path: self.sha256(path) for path in self.undeclared}
        rows.update({path: replace(rows[path], sha256=sha256) for path, sha256 in digests.items() if sha256})
        return tuple([rows[path] for path in sorted(rows)])


def walk(root: str, claims: Claims) -> Tree:
    """All regular files and symlinks under ``root`` (a real path), but no bytecode that nobody claims.

    What vanishes meanwhile is left out; folders that cannot be listed and special files are named in ``unreadable``.
    """
    tree = Tree(root=root)
    folders = [""]
    while folders:
        folder = folders.pop()
        with _listing(tree, folder) as (descriptor, listing):
            folders += _read(tree, claims, folder, descriptor, listing)
    return tree


def _read(tree: Tree, claims: Claims, folder: str, descriptor: int, listing: Iterable[os.DirEntry[str]]) -> list[str]:
    """Add the files of one folder to the tree and return its folders: the loop that every file passes."""
    rows, single = tree.rows, claims.single
    folders = []
    cached = folder.endswith("__pycache__/")
    for item in listing:
        path = folder + item.name
        if item.is_dir(follow_symlinks=False):
            folders.append(path + "/")
            continue
        if cached and path.endswith(".pyc") and path not in claims:
            continue
        try:
            facts = item.stat(follow_symlinks=False)
            kind = facts.st_mode & _KIND
            link = os.readlink(item.name, dir_fd=descriptor) if kind == stat.S_IFLNK else None
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                tree.unreadable[path] = error.strerror or str(error)
            continue
        if link is None and kind != stat.S_IFREG:
            tree.unreadable[path] = "it is no file but a socket, pipe or device"
            continue
        owners, claim = single.get(path, _NOBODY)
        if claim[-1] == ",":
            owners = owners or tuple(sorted(claims.shared.get(path, ())))
            tree.undeclared.append(path)
        rows[path] = file_row(path, facts.st_size, facts.st_mtime_ns, facts.st_ino, None, owners, link)
    return folders


@contextmanager
def _listing(tree: Tree, folder: str) -> Iterator[tuple[int, Iterable[os.DirEntry[str]]]]:
    """A folder's descriptor and entries; nothing (and, unless it has vanished, told) where it cannot be listed.

    Through a descriptor every stat looks up one name instead of the whole path, and no symlink that takes the
    folder's place meanwhile is followed.
    """
    try:
        descriptor = os.open(f"{tree.root}/{folder.rstrip('/')}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            tree.unreadable[folder.rstrip("/") or "."] = error.strerror or str(error)
        yield -1, ()
        return
    try:
        with os.scandir(descriptor) as listing:
            yield descriptor, listing
    finally:
        os.close(descriptor)
