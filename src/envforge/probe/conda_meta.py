"""What conda-meta says of a prefix: which packages are there, from where, and which files are theirs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .claims import Claims
from .sites import names

FOLDER = "conda-meta"
_SOFT = "softlink"
_SCRIPT = "unix_python_entry_point"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One package as its file ``path`` (relative to the prefix) tells it.

    ``channel``: its URL; ``files``: path in the prefix -> sha256 (hex) of what lies there, None where nothing says it
    (links, and bytecode that was compiled here). ``contents``: a digest of what the package holds, free of the prefix.
    ``requested``: somebody asked for it by name.
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
    contents: str


def read(root: str, sites: Iterable[str], unreadable: dict[str, str]) -> tuple[Record, ...]:
    """The packages of the prefix ``root``, by file name; ``sites``: its site-packages, relative.

    What cannot be read or is no such record is told in ``unreadable`` (path -> why), and left out.
    """
    site = next(iter(sites), "lib/python/site-packages")
    found = []
    for entry in names(f"{root}/{FOLDER}"):
        if not entry.endswith(".json"):
            continue
        path = f"{FOLDER}/{entry}"
        try:
            found.append(parse(path, _text(f"{root}/{path}"), site))
        except OSError as error:
            unreadable[path] = error.strerror or str(error)
        except (ValueError, KeyError, TypeError, AttributeError):
            unreadable[path] = "it is no record of a conda package"
    return tuple(found)


def witness(root: str, path: str, sha256: str, sites: Iterable[str]) -> Record | None:
    """The record that lies at ``path``, if it has this sha256 (hex); else None."""
    try:
        text = _text(f"{root}/{path}")
        if hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() != sha256:
            return None
        return parse(path, text, next(iter(sites), "lib/python/site-packages"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def parse(path: str, text: str, site: str) -> Record:
    """Raises ValueError, KeyError, TypeError or AttributeError where ``text`` is no record."""
    data: dict[str, Any] = json.loads(text)
    entries = list(_entries(data))
    requested = data.get("requested_specs") or data.get("requested_spec")
    lines = sorted(f"{entry['_path']},{_kept(entry)}" for entry in entries)
    return Record(
        path=path,
        name=str(data["name"]),
        version=str(data["version"]),
        build=str(data["build"]),
        channel=_optional(data.get("channel")),
        file=_optional(data.get("fn")),
        url=_optional(data.get("url")),
        sha256=_optional(data.get("sha256")),
        size=data["size"] if isinstance(data.get("size"), int) else None,
        requested=bool(requested) and requested != "None",
        files={placed(str(entry["_path"]), site): _hash(entry) for entry in entries if _is_file(entry)},
        contents=hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest(),
    )


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
    for path, sha256 in record.files.items():
        if path.startswith("/") or ".." in path.split("/"):
            claims.outside.setdefault(owner, []).append(path)
        elif sha256 is not None or not path.endswith(".pyc"):
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
