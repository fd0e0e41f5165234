"""What conda-meta says of a prefix: which packages are there, from where, and which files are theirs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .claims import Claims
from .sites import names

FOLDER = "conda-meta"
MOVED = "__clobbers__/"
"""Where rattler puts a file of a package whose path another package has."""
_SOFT = "softlink"
_SCRIPT = "unix_python_entry_point"
_TOKEN = re.compile(r"/t/[^/]+/")
_NO_RECORD = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
# What became of the package in this prefix.
_OF_THE_PREFIX = frozenset({
    "auth", "extracted_package_dir", "files", "link", "package_tarball_full_path", "paths_data", "prefix_record_schema",
    "requested_spec", "requested_specs",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One package as its file ``path`` (relative to the prefix) tells it.

    ``channel``: its URL; ``files``: path in the prefix -> sha256 (hex) of what lies there, None where nothing says it
    (links, and bytecode that was compiled here). ``contents``: a digest of what the package holds, free of the prefix.
    ``moved``: likewise, what the package brings to paths where another package's file lies, so that its own made way.
    ``requested``: somebody asked for it by name. ``repodata``: what its channel said of it, as JSON; None where that is
    too little to get the very same again.
    """

    path: str
    name: str
    version: str
    build: str
    channel: str | None
    file: str | None
    url: str | None
    sha256: str | None
    size: int | None
    requested: bool
    files: Mapping[str, str | None]
    moved: Mapping[str, str | None]
    contents: str
    repodata: str | None


def is_environment(prefix: Path) -> bool:
    """Whether conda takes ``prefix`` for an environment."""
    return (prefix / FOLDER / "history").is_file()


def read(root: str, sites: Iterable[str], unreadable: dict[str, str], broken: list[str]) -> tuple[Record, ...]:
    """The packages of the prefix ``root``, by file name; ``sites``: its site-packages, relative.

    What cannot be read is told in ``unreadable`` (path -> why), what is no such record in ``broken``, and left out.
    """
    site = next(iter(sites), "lib/python/site-packages")
    found = []
    for entry in names(f"{root}/{FOLDER}"):
        if not entry.endswith(".json"):
            continue
        path = f"{FOLDER}/{entry}"
        try:
            if not stat.S_ISREG(os.lstat(f"{root}/{path}").st_mode):
                broken.append(path)
                continue
            found.append(parse(path, _text(f"{root}/{path}"), site))
        except OSError as error:
            unreadable[path] = error.strerror or str(error)
        except _NO_RECORD:
            broken.append(path)
    return tuple(found)


def witness(root: str, path: str, sha256: str, sites: Iterable[str]) -> Record | None:
    """The record that lies at ``path``, if it has this sha256 (hex); else None."""
    try:
        text = _text(f"{root}/{path}")
        if hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() != sha256:
            return None
        return parse(path, text, next(iter(sites), "lib/python/site-packages"))
    except (OSError, *_NO_RECORD):
        return None


def parse(path: str, text: str, site: str) -> Record:
    """Raises what `_NO_RECORD` lists where ``text`` is none."""
    data: dict[str, Any] = json.loads(text)
    entries = list(_entries(data))
    requested = data.get("requested_specs") or data.get("requested_spec")
    lines = sorted(f"{_meant(entry)},{_kept(entry)}" for entry in entries)
    return Record(
        path=path,
        name=str(data["name"]),
        version=str(data["version"]),
        build=str(data["build"]),
        channel=_bare(data["channel"]) if data.get("channel") else None,
        file=_optional(data.get("fn")),
        url=_bare(data["url"]) if data.get("url") else None,
        sha256=_optional(data.get("sha256")),
        size=data["size"] if isinstance(data.get("size"), int) else None,
        requested=bool(requested) and requested != "None",
        files={placed(str(entry["_path"]), site): _hash(entry) for entry in entries if _is_file(entry)},
        moved={placed(_meant(entry), site): _hash(entry) for entry in entries if _meant(entry) != entry["_path"]},
        contents=hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest(),
        repodata=_repodata(data),
    )


def _repodata(data: Mapping[str, Any]) -> str | None:
    if not all(data.get(key) for key in ("fn", "url", "channel", "sha256")):
        return None
    kept = {key: value for key, value in data.items() if key not in _OF_THE_PREFIX and value is not None}
    return json.dumps({**kept, "url": _bare(data["url"]), "channel": _bare(data["channel"])}, sort_keys=True)


def _bare(url: object) -> str:
    """``url`` without what opens it, be it a user or, as some channels have it, a token in the path."""
    from envforge.system.http import without_credentials  # noqa: PLC0415 - 17 ms, only where there is a conda package

    return _TOKEN.sub("/", without_credentials(str(url))) if "://" in str(url) else str(url)


def placed(path: str, site: str) -> str:
    """Where a path lies: that of a noarch package may be written as the package has it."""
    for inside, outside in (("site-packages/", f"{site}/"), ("python-scripts/", "bin/")):
        if path.startswith(inside):
            return outside + path[len(inside) :]
    return path


def claim(record: Record, owner: str, claims: Claims) -> None:
    """Add the files of ``record``, and the record itself, to ``claims``.

    Paths that leave the prefix are not followed, but told in ``outside``.
    """
    key = (owner,)
    claims.add(record.path, key, f"{record.path},")
    # Who installs writes these, whatever a package brings.
    notes = {f"{FOLDER}/history", f"{FOLDER}/state"}
    for path, sha256 in record.moved.items():
        claims.moved.setdefault(path, {})[owner] = _row(sha256) if sha256 else ""
    for path, sha256 in record.files.items():
        if path.startswith("/") or ".." in path.split("/"):
            claims.outside.setdefault(owner, []).append(path)
        elif (sha256 is not None or not path.endswith(".pyc")) and path not in notes:
            claims.add(path, key, f"{path},{_row(sha256) if sha256 else ''}")


def _row(sha256: str) -> str:
    """The hash as a RECORD writes it."""
    return f"sha256={base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip('=')}"


def _entries(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    paths = data.get("paths_data")
    if isinstance(paths, dict) and isinstance(paths.get("paths"), list):
        yield from paths["paths"]
    else:
        # Records of old condas have names only.
        yield from ({"_path": path} for path in data.get("files", ()))


def _meant(entry: Mapping[str, Any]) -> str:
    """The path that the package has for a file, which may have had to make way for another's."""
    return str(entry.get("original_path") or entry["_path"])


def _is_file(entry: Mapping[str, Any]) -> bool:
    return entry.get("path_type") != "directory"


def _hash(entry: Mapping[str, Any]) -> str | None:
    if entry.get("path_type") == _SOFT:
        return None
    found = entry.get("sha256_in_prefix") or (None if entry.get("prefix_placeholder") else entry.get("sha256"))
    return bytes.fromhex(found).hex() if found else None


def _kept(entry: Mapping[str, Any]) -> str:
    """The hash of a file as the package holds it; a script that is made here, of an entry point, names the prefix."""
    return "" if entry.get("path_type") == _SCRIPT else str(entry.get("sha256") or "")


def _optional(value: object) -> str | None:
    return str(value) if value else None


def _text(path: str) -> str:
    # A planted pipe must not block, a planted symlink not lead elsewhere.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, not a path
        return stream.read()
