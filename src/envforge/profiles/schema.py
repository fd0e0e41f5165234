"""The JSON Schemas for editors, generated from the forms: ``python -m envforge.profiles.schema`` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envforge.profiles import lookup
from envforge.profiles.forms import Form, ProfileForm, RecipeForm
from envforge.profiles.mistakes import MAY_BE_NULL

_FORMS: dict[str, type[Form]] = {"profile": ProfileForm, "recipe": RecipeForm}


def render(kind: str) -> str:
    """The schema of a ``profile`` or ``recipe`` as JSON text."""
    document = _FORMS[kind].model_json_schema(by_alias=True)
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_tidy(document)}
    return json.dumps(document, indent=2, sort_keys=False) + "\n"


def paths() -> dict[str, Path]:
    """Where the schemas lie: beside the files that they describe."""
    return {kind: lookup.shipped(f"{kind}s") / f"{kind}.schema.json" for kind in _FORMS}


def write() -> None:
    for kind, path in paths().items():
        path.write_text(render(kind), encoding="utf-8")


def _tidy(value: Any) -> Any:
    """Without titles and defaults, which tell an editor nothing, and without null where no file may hold it."""
    if isinstance(value, list):
        return [_tidy(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    tidy: dict[str, Any] = {}
    for key, inner in value.items():
        if key in {"properties", "$defs"}:
            tidy[key] = {name: _tidy(entry if name in MAY_BE_NULL else _filled(entry)) for name, entry in inner.items()}
        elif key not in {"title", "default"}:
            tidy[key] = _tidy(inner)
    return tidy


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    """A property's schema without the branch for null; one branch that is left stands for itself."""
    branches = [branch for branch in entry.get("anyOf", []) if branch != {"type": "null"}]
    if len(branches) == len(entry.get("anyOf", [])):
        return entry
    rest = {key: inner for key, inner in entry.items() if key != "anyOf"}
    return rest | branches[0] if len(branches) == 1 else rest | {"anyOf": branches}


if __name__ == "__main__":
    write()
