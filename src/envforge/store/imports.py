"""What distributions import, kept by what their code is: ``cache/imports/NAME-DIGEST.json``.

It only spares reading the code again; where this user cannot write it, it is read again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from envforge.model.imports import Import, Imports, Kind

from .layout import Home

_SCHEMA = 1


def folder(home: Home) -> Path:
    """Where all of it lies."""
    return home.cache / "imports"


def write(home: Home, name: str, digest: str, imports: Imports) -> None:
    """Keep what the distribution ``name`` (canonical), whose code has this digest, imports and provides."""
    place = _place(home, name, digest)
    document = {
        "schema": _SCHEMA,
        "provides": list(imports.provides),
        "imports": [[each.module, each.kind.value, each.path, each.line] for each in imports.imports],
        "unread": list(imports.unread),
    }
    partial = place.with_name(f".{uuid4().hex}.part")
    # Without fsync, which hundreds of files would feel: half a file is no JSON, and then it is read anew.
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
        partial.replace(place)


def read(home: Home, name: str, digest: str) -> Imports | None:
    """None where nothing is kept, or it cannot be understood."""
    try:
        data = json.loads(_place(home, name, digest).read_bytes())
        if data["schema"] != _SCHEMA:
            return None
        return Imports(
            imports=tuple(
                Import(module=str(module), kind=Kind(kind), path=str(path), line=int(line))
                for module, kind, path, line in data["imports"]
            ),
            provides=tuple(map(str, data["provides"])),
            unread=tuple(map(str, data["unread"])),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _place(home: Home, name: str, digest: str) -> Path:
    return folder(home) / f"{name}-{digest}.json"
