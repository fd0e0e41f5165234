"""What a channel says of a conda package, as its record in the state has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .state import Distribution

NOARCH = "noarch"


def said(item: Distribution) -> Mapping[str, Any]:
    """The channel's record; empty where none is kept."""
    found: dict[str, Any] = json.loads(item.repodata) if item.repodata is not None else {}
    return found


def depends(item: Distribution) -> tuple[str, ...]:
    """The match specs that a package requires."""
    return tuple(said(item).get("depends", ()))


def subdir(item: Distribution) -> str:
    """``linux-64``, or ``noarch``."""
    return str(said(item).get("subdir", NOARCH))


def spec_name(spec: str) -> str:
    """The package that a match spec is about."""
    return split(spec)[0]


def split(spec: str) -> tuple[str, str]:
    """A match spec as the name of its package and what it says of version and build; without the channel."""
    bare = spec.rpartition("::")[2].strip()
    found = re.match(r"[A-Za-z0-9_.-]+", bare)
    return (found[0].lower(), bare[found.end() :].strip()) if found else (bare, "")
