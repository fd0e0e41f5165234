"""Records that only spare work or worry: written where this user can, understood where they can be."""

from __future__ import annotations

import json
from typing import Any

from envforge.model.errors import EnvforgeError

from .atomic import read_text, write_text
from .layout import Home


def write(home: Home, name: str, generation: int, file: str, document: dict[str, Any]) -> bool:
    """Keep ``document`` as ``file`` in the records of a generation.

    False, and nothing more, where this user cannot write there or the generation has no records.
    """
    folder = home.record(name, generation)
    if not folder.is_dir():
        return False
    try:
        home.make_record(name, generation)  # refuses a planted symlink
        write_text(folder / file, json.dumps(document, separators=(",", ":")))
    except EnvforgeError:
        return False
    return True


def read(home: Home, name: str, generation: int, file: str) -> Any:
    """What was kept last; None where nothing was, or it is no JSON."""
    try:
        return json.loads(read_text(home.record(name, generation) / file, what="the record"))
    except (EnvforgeError, ValueError, RecursionError):
        return None
