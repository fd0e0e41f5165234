"""A file that comes over the network: at its place once it is whole, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from envforge.system.http import body

if TYPE_CHECKING:
    import httpx


def save(response: httpx.Response, target: Path, sha256: str | None, told: Callable[[int], None] | None = None) -> str:
    """Read a streamed response to its end, and put it at ``target`` where it has ``sha256`` (hex; None: any).

    Returns the sha256 that it has; ``told``: of every bytes that came. Raises Unreachable, OSError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f"{target.name}.{uuid4().hex}.part")
    digest = hashlib.sha256()
    try:
        with half.open("wb") as file:
            for chunk in body(response):
                digest.update(chunk)
                file.write(chunk)
                if told is not None:
                    told(len(chunk))
        found = digest.hexdigest()
        if sha256 in {None, found}:
            half.replace(target)
        return found
    finally:
        half.unlink(missing_ok=True)
