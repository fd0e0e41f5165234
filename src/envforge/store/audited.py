"""How the last audit of a generation ended: ``records/NAME/G/audit.json``."""

from __future__ import annotations

from envforge.model.views import Audited

from . import spare
from .layout import Home

_FILE = "audit.json"
_SCHEMA = 1


def write(home: Home, name: str, generation: int, audited: Audited) -> None:
    """Remember it; where this user cannot write, nothing happens."""
    document = {
        "schema": _SCHEMA,
        "at": audited.at,
        "deep": audited.deep,
        "errors": audited.errors,
        "warnings": audited.warnings,
    }
    spare.write(home, name, generation, _FILE, document)


def read(home: Home, name: str, generation: int) -> Audited | None:
    """None where there was none, or what is kept cannot be understood."""
    match spare.read(home, name, generation, _FILE):
        case {"schema": 1, "at": str(at), "deep": bool(deep), "errors": int(errors), "warnings": int(warnings)}:
            return Audited(at=at, deep=deep, errors=errors, warnings=warnings)
    return None
