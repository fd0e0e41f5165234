"""Snapshots as JSON text and back: stable order, so that two are comparable by ``diff``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import fields
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from envforge.model.snapshot import SNAPSHOT_SCHEMA, BuiltFor, Snapshot
from envforge.model.state import Distribution, FileRow, Origin, file_row
from envforge.model.typed import checked
from envforge.system.memory import uncollected

from .atomic import corrupt, newer

_WHAT = "the snapshot"
_VERSION = re.compile(r"\d+(\.\d+){1,2}\S*", re.ASCII)


def dump_snapshot(snapshot: Snapshot) -> str:
    """All but the table of files, indented, keys sorted."""
    plain = [field.name for field in fields(snapshot) if field.name not in {"cards", "files", "state"}]
    data: dict[str, Any] = {name: getattr(snapshot, name) for name in plain}
    data["cards"] = [{field.name: getattr(card, field.name) for field in fields(card)} for card in snapshot.cards]
    data["distributions"] = {name: _distribution(dist) for name, dist in snapshot.state.items()}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _distribution(dist: Distribution) -> dict[str, Any]:
    data: dict[str, Any] = {field.name: getattr(dist, field.name) for field in fields(dist)}
    if dist.origin is not None:
        data["origin"] = {field.name: getattr(dist.origin, field.name) for field in fields(dist.origin)}
    return data


def load_snapshot(text: str, path: Path) -> Snapshot:
    """The snapshot, without its table of files.

    Raises EnvforgeError ``corrupt-record`` naming ``path``, UsageError ``newer-record``.
    """
    data = _document(text, path)
    try:
        raw = dict(data)
        raw["state"] = {name: _load_distribution(name, entry) for name, entry in raw.pop("distributions").items()}
        raw["cards"] = tuple(checked(BuiltFor(**entry)) for entry in raw.get("cards", ()))
        known = {field.name for field in fields(Snapshot)} - {"files"}
        snapshot = checked(Snapshot(**{name: value for name, value in raw.items() if name in known}))
        if not _VERSION.fullmatch(snapshot.python):
            raise ValueError(f"`python` is {snapshot.python!r}")  # noqa: TRY301 - told like the others
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise corrupt(path, what=_WHAT, cause=f"a field is missing or has the wrong type ({error})") from error
    return snapshot


def _load_distribution(name: str, entry: dict[str, Any]) -> Distribution:
    known = {field.name for field in fields(Distribution)}
    raw = {key: value for key, value in entry.items() if key in known}
    if not isinstance(raw.get("requires", []), list):
        message = f"`requires` of `{name}` is {raw['requires']!r}"
        raise TypeError(message)
    raw["requires"] = tuple(raw.get("requires", []))
    if raw.get("origin") is not None:
        raw["origin"] = checked(Origin(**raw["origin"]))
    return checked(Distribution(**raw))


def dump_files(files: Iterable[FileRow]) -> str:
    """The table of files, sorted by path, one row a line: path, size, mtime, inode, sha256, owners, link."""
    quote = encode_basestring_ascii
    owners_seen: dict[tuple[str, ...], str] = {}
    rows = []
    for row in sorted(files, key=_path):
        owners = owners_seen.get(row.owners)
        if owners is None:
            owners = owners_seen[row.owners] = json.dumps(row.owners)
        sha256 = "null" if row.sha256 is None else quote(row.sha256)
        link = "null" if row.link is None else quote(row.link)
        rows.append(f"[{quote(row.path)}, {row.size}, {row.mtime}, {row.inode}, {sha256}, {owners}, {link}]")
    body = ",\n".join(rows)
    return f'{{"schema": {SNAPSHOT_SCHEMA}, "files": [\n{body}\n]}}\n'


def _path(row: FileRow) -> str:
    return row.path


def load_files(text: str, path: Path) -> tuple[FileRow, ...]:
    """The table of files; raises as ``load_snapshot`` does."""
    owners: dict[tuple[str, ...], tuple[str, ...]] = {}
    try:
        with uncollected():
            entries = _document(text, path)["files"]
            for position, entry in enumerate(entries):
                # In its place: two whole tables of 100,000 rows would lie in memory else.
                entries[position] = _row(entry, owners)
            return tuple(entries)
    except (TypeError, KeyError, ValueError) as error:
        raise corrupt(path, what="the table of files", cause=f"a row is incomplete ({error})") from error


def _row(entry: list[Any], known: dict[tuple[str, ...], tuple[str, ...]]) -> FileRow:
    """``known``: the owners that came before, each once."""
    path, size, mtime, inode, sha256, names, link = entry
    numbers = type(size) is int and type(mtime) is int and type(inode) is int
    if type(path) is not str or not numbers or not isinstance(names, list):
        message = f"`{path!r}`"
        raise TypeError(message)
    owners = tuple(names)
    if owners not in known and not all(type(name) is str for name in owners):
        message = f"`{path!r}`"
        raise TypeError(message)
    if type(sha256 or "") is not str or type(link or "") is not str:
        message = f"`{path!r}`"
        raise TypeError(message)
    return file_row(path, size, mtime, inode, sha256, known.setdefault(owners, owners), link)


def _document(text: str, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, what=_WHAT, cause=f"it is no JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise corrupt(path, what=_WHAT, cause="it has no `schema` number")
    if schema > SNAPSHOT_SCHEMA:
        raise newer(path, f"its schema is {schema}, this envforge knows {SNAPSHOT_SCHEMA} and older")
    return dict(data)
