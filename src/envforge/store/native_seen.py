"""What was last found in the compiled files of a generation: ``records/NAME/G/native.json``."""

from __future__ import annotations

from envforge.model.native import Native

from . import spare
from .elf_encoding import SCHEMA, load_native, native_document
from .layout import Home

_FILE = "native.json"


def write(home: Home, name: str, generation: int, native: Native, *, key: str) -> None:
    """Remember it under ``key``, which tells what it was found in; where this user cannot write, nothing happens."""
    spare.write(home, name, generation, _FILE, {"schema": SCHEMA, "key": key, **native_document(native)})


def read(home: Home, name: str, generation: int, *, key: str) -> Native | None:
    """None where nothing was kept, it was found in something else, or it cannot be understood."""
    kept = spare.read(home, name, generation, _FILE)
    try:
        return load_native(kept) if kept["schema"] == SCHEMA and kept["key"] == key else None
    except (KeyError, ValueError, TypeError):
        return None
