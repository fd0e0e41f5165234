"""Conda channels: real packages of format 1, the same bytes every time, and the repodata that lists them."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import platform
import posixpath
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from .server import Asked, Fault, File, Item

# Of the machine that the tests run on.
SUBDIR = {"x86_64": "linux-64"}.get(platform.machine(), f"linux-{platform.machine()}")
# As long as a prefix may be: whatever takes its place in a binary file is shorter, and padded.
PLACEHOLDER = ("/placehold" * 26)[:255]
_EPOCH = 1577836800

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Package:
    """What a conda package holds.

    ``files``: path in the prefix -> content. One that holds `PLACEHOLDER` is told to get the prefix in its place: text
    where the content is a string, binary where it is bytes (the placeholder must then stand in a string that ends with
    a zero byte). ``links``: path -> target of a symlink. ``executable``: patterns of paths. A ``noarch`` Python package
    has its modules under ``site-packages/``; ``entry_points``: its console scripts, name -> ``module:function``.
    ``subdir_of``: the subdir of a package that is bound to an architecture. ``site_packages``: where a Python looks for
    modules, if that is not the usual place.
    """

    name: str
    version: str
    build: str = "0"
    build_number: int = 0
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    noarch: Literal["python", "generic"] | None = None
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    executable: tuple[str, ...] = ("bin/*",)
    entry_points: Mapping[str, str] = field(default_factory=dict)
    subdir_of: str = SUBDIR
    site_packages: str | None = None

    @property
    def subdir(self) -> str:
        return "noarch" if self.noarch else self.subdir_of

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-{self.build}.tar.bz2"

    def index(self) -> Row:
        """The text of ``info/index.json``, which repodata repeats."""
        system, _, arch = self.subdir.partition("-")
        row: Row = {
            "arch": None if self.noarch else {"64": "x86_64"}.get(arch, arch),
            "build": self.build,
            "build_number": self.build_number,
            "constrains": [*self.constrains],
            "depends": [*self.depends],
            "license": "Apache-2.0",
            "name": self.name,
            "platform": None if self.noarch else system,
            "subdir": self.subdir,
            "timestamp": _EPOCH * 1000,
            "version": self.version,
        }
        if self.noarch:
            row["noarch"] = self.noarch
        if self.site_packages:
            row["python_site_packages_path"] = self.site_packages
        return row

    def paths(self) -> list[Row]:
        """The rows of ``info/paths.json``: a symlink has hash and size of what it leads to, or of nothing."""
        rows = []
        for path in sorted([*self.files, *self.links]):
            data = self._content(path)
            row: Row = {
                "_path": path,
                "path_type": "softlink" if path in self.links else "hardlink",
                "sha256": hashlib.sha256(data).hexdigest(),
                "size_in_bytes": len(data),
            }
            if path in self.files and PLACEHOLDER.encode() in data:
                mode = "text" if isinstance(self.files[path], str) else "binary"
                row |= {"prefix_placeholder": PLACEHOLDER, "file_mode": mode}
            rows.append(row)
        return rows

    def tampered(self) -> bytes:
        """Another, valid package under the same name."""
        return replace(self, files={**self.files, f"share/{self.name}/other": "other\n"}).bytes()

    def _info(self) -> dict[str, str]:
        paths = self.paths()
        info = {
            "index.json": _json(self.index()),
            "files": "".join(f"{row['_path']}\n" for row in paths),
            "paths.json": _json({"paths": paths, "paths_version": 1}),
        }
        prefixed = [row for row in paths if "file_mode" in row]
        if prefixed:
            lines = [f"{row['prefix_placeholder']} {row['file_mode']} {row['_path']}\n" for row in prefixed]
            info["has_prefix"] = "".join(lines)
        if self.noarch:
            noarch: Row = {"type": self.noarch}
            if self.entry_points:
                noarch["entry_points"] = [f"{name} = {target}" for name, target in self.entry_points.items()]
            info["link.json"] = _json({"noarch": noarch, "package_metadata_version": 1})
        return info

    def _content(self, path: str) -> bytes:
        """What is read at ``path``; nothing where a symlink leads nowhere."""
        if path in self.links:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), self.links[path]))
            if not posixpath.isabs(target):
                return self._content(target)
            return Path(target).read_bytes() if Path(target).is_file() else b""
        content = self.files.get(path, b"")
        return content.encode() if isinstance(content, str) else content

    @cached_property
    def _archive(self) -> bytes:
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, text in self._info().items():
                _add(archive, f"info/{path}", text.encode())
            for path in sorted(self.files):
                executable = any(fnmatchcase(path, pattern) for pattern in self.executable)
                _add(archive, path, self._content(path), mode=0o755 if executable else 0o644)
            for path, target in sorted(self.links.items()):
                _add(archive, path, target=target)
        return bz2.compress(plain.getvalue(), 1)

    def bytes(self) -> bytes:
        """The ``.tar.bz2`` file."""
        return self._archive


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True)


def _add(archive: tarfile.TarFile, path: str, data: bytes = b"", *, mode: int = 0o644, target: str = "") -> None:
    entry = tarfile.TarInfo(path)
    entry.mtime = _EPOCH
    entry.mode = mode
    entry.size = len(data)
    if target:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
    archive.addfile(entry, io.BytesIO(data))


@dataclass(slots=True, kw_only=True)
class Channel:
    """One channel, to be served by `serve` like an index.

    Requests for repodata are of kind ``page``, those for packages of kind ``file``; both are named by their path, as in
    ``noarch/repodata.json``, and so do ``hidden`` (listed, but the file answers 404) and ``faults`` mean them.
    ``Fault(page="noarch/*", status=404)``: a whole subdir is missing; ``Fault(file=..., other=True)``: a wrong sha256.
    """

    packages: Sequence[Package] = ()
    auth: str | None = None
    hidden: Sequence[str] = ()
    faults: Sequence[Fault] = ()
    ranges: bool = True

    @property
    def items(self) -> Sequence[Package]:
        return self.packages

    @property
    def start(self) -> str:
        return ""

    def place(self, item: Item) -> str:
        package = _package(item)
        return f"{package.subdir}/{package.filename}"

    def asked(self, path: str) -> Asked:
        return Asked("file" if path.endswith((".tar.bz2", ".conda")) else "page", path)

    def listing(self, base: str, name: str, files: Mapping[str, File]) -> tuple[bytes, str] | None:
        """``SUBDIR/repodata.json`` of this machine's subdir, of noarch, and of any other that has packages."""
        subdir, _, page = name.partition("/")
        packages = {
            place.partition("/")[2]: _record(_package(file.item), file.data)
            for place, file in sorted(files.items())
            if place.startswith(f"{subdir}/")
        }
        if page != "repodata.json" or (subdir not in ("noarch", SUBDIR) and not packages):
            return None
        document = {
            "info": {"subdir": subdir},
            "packages": packages,
            "packages.conda": {},
            "removed": [],
            "repodata_version": 1,
        }
        return _json(document).encode(), "application/json"

    def content(self, name: str, files: Mapping[str, File], *, other: bool) -> bytes | None:
        file = files.get(name)
        if file is None:
            return None
        return file.item.tampered() if other else file.data


def _package(item: Item) -> Package:
    assert isinstance(item, Package)
    return item


def _record(package: Package, data: bytes) -> Row:
    digests = {"md5": hashlib.md5(data, usedforsecurity=False).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    return {**package.index(), **digests, "size": len(data)}
