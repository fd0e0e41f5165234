"""RECORD tables: who owns which path, and what of it counts as a distribution's contents."""

from __future__ import annotations

import csv
import os
import posixpath
import re
from collections.abc import Iterator

from .claims import Claims, declared
from .contents import Contents
from .installed import Info

# What installers add or rewrite in a metadata folder; all else in it comes from the wheel.
_INSTALLERS_OWN = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json"})
_NUMBERED = re.compile(r"-?\d+(\.\d+)*$")


def claim(info: Info, root: str, sites: tuple[str, ...], claims: Claims) -> Contents:
    """Add the rows of ``info`` to ``claims`` and return what its digest is made of.

    ``sites``: every site-packages, relative to the prefix ``root``.
    """
    contents = Contents()
    owner = (info.name,)
    base = f"{info.path}/" if info.legacy else f"{info.site}/"
    single, shared, lines = claims.single, claims.shared, contents.lines
    for head in _heads(info):
        row = head[: head.rfind(",")]
        bytecode = row.endswith(".pyc")
        unhashed = head[-1] == ","
        if bytecode and unhashed:
            continue
        if row[0] not in "./" and ".." not in row:
            path, key = base + row, row
        else:
            located = _locate(row, base, root, claims, info.name)
            if located is None:
                continue
            path, key = located, _key(located, sites)
            head = f"{key},{declared(head)}"  # noqa: PLW2901 - the same row under its canonical name
        if path in single or path in shared:
            claims.add(path, owner, head)
        else:
            single[path] = (owner, head)
        if bytecode or (".dist-info/" in key and not _is_wheels_own(key, info.folder)):
            continue
        if key.startswith("/bin/"):
            if not _is_generated(key[5:], info):
                contents.scripts.append((path, declared(head)))
        elif unhashed:
            contents.unhashed.append((key, path))
        else:
            lines.append(head)
    return contents


def _is_generated(script: str, info: Info) -> bool:
    """Whether the installer wrote it from an entry point, which stands in the metadata (pip adds `pip3.11`)."""
    return script in info.scripts or _NUMBERED.sub("", script) in info.scripts


def _heads(info: Info) -> Iterator[str]:
    """``path,hash`` of every row that has a path, the hash without padding; the size is not needed.

    This is most of a look after the walk: the csv module is asked only where a row is quoted.
    """
    text = (info.record or b"").decode("utf-8", "surrogateescape").removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    if info.legacy:
        for line in filter(None, text.splitlines()):
            yield f"{line},"
    elif '"' in text:
        for row in csv.reader(text.splitlines(keepends=True)):
            if row and row[0]:
                yield f"{row[0]},{row[1].rstrip('=') if len(row) > 1 else ''}"
    else:
        for line in text.split("\n"):
            head = line[: line.rfind(",")]
            if head.find(",") > 0:
                yield head if head[-1] != "=" else head.rstrip("=")


def _locate(row: str, base: str, root: str, claims: Claims, name: str) -> str | None:
    """Where a row leads, relative to the prefix; None (and told in ``outside``) where it leaves it."""
    path = posixpath.normpath(posixpath.join("/" if row.startswith("/") else f"{root}/{base}", row))
    if not row or not path.startswith(f"{root}/"):
        claims.outside.setdefault(name, []).append(row)
        return None
    inside = path[len(root) + 1 :]
    if inside.startswith("lib64/") and os.path.islink(f"{root}/lib64"):  # noqa: PTH114 - text in, text out
        return f"lib/{inside[6:]}"
    return inside


def _key(path: str, sites: tuple[str, ...]) -> str:
    """The path as it counts for contents: purelib and platlib are one place."""
    for site in sites:
        if path.startswith(f"{site}/"):
            return path[len(site) + 1 :]
    return f"/{path}"


def _is_wheels_own(key: str, folder: str) -> bool:
    """Whether a file in a metadata folder comes from this wheel: some wheels list files of another's folder."""
    top, _, file = key.partition("/")
    if not top.endswith(".dist-info"):
        return True
    return top == folder and not _is_installers_own(file)


def is_installers(path: str) -> bool:
    """Whether an installer, and no wheel, writes a file of this path."""
    folder, _, file = path.rpartition("/")
    return folder.endswith(".dist-info") and _is_installers_own(file)


def _is_installers_own(file: str) -> bool:
    return file in _INSTALLERS_OWN or (file.startswith("uv_") and file.endswith(".json"))
