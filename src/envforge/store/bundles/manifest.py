"""``manifest.json`` of a bundle, as text and back."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from envforge.model.bundle import BROUGHT, BUNDLE_SCHEMA, HOST, Manifest, Member, Needs, Program
from envforge.model.errors import UsageError
from envforge.model.typed import checked
from envforge.store.atomic import newer

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_GLIBC = re.compile(r"[0-9]+\.[0-9]+", re.ASCII)


def dump(manifest: Manifest) -> bytes:
    """Its text, in stable order."""
    return (json.dumps({"schema": BUNDLE_SCHEMA, **asdict(manifest)}, indent=1) + "\n").encode()


def load(content: bytes, path: Path) -> Manifest:
    """The inverse; ``path`` is the bundle's. Raises UsageError ``not-a-bundle`` or ``newer-record``."""
    try:
        data = json.loads(content)
        if type(data["schema"]) is int and data["schema"] > BUNDLE_SCHEMA:
            raise newer(path, f"its schema is {data['schema']}, this envforge knows {BUNDLE_SCHEMA}")
        if data["schema"] != BUNDLE_SCHEMA or not isinstance(data["members"], list):
            raise ValueError("schema or members")  # noqa: TRY301 - told like the others
        return _manifest(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise invalid(path, f"its manifest is not as it must be ({error})") from error


def invalid(path: Path, cause: str) -> UsageError:
    """The error for a file that no envforge wrote as a bundle."""
    return UsageError(
        "not-a-bundle",
        f"`{path}` is no bundle that envforge can build from",
        cause=cause,
        hint="`envforge bundle` makes one",
    )


def check_name(name: str) -> str:
    """Return ``name`` if a file of a bundle may be called so. Raises ValueError."""
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or str(pure) != name or "\0" in name:
        message = f"`{name}` leads out of it"
        raise ValueError(message)
    return name


def _manifest(data: dict[str, Any]) -> Manifest:
    """Raises ValueError, TypeError, KeyError, AttributeError."""
    program = data["program"]
    manifest = checked(
        Manifest(
            environment=data["environment"],
            python=data["python"],
            python_from=data["python_from"],
            needs=_needs(data["needs"]),
            program=checked(Program(**{**program, "needs": _needs(program["needs"])})),
            members=tuple(map(_member, data["members"])),
        )
    )
    if manifest.python_from not in {HOST, BROUGHT}:
        message = f"its Python is from `{manifest.python_from}`"
        raise ValueError(message)
    return manifest


def _needs(data: dict[str, Any]) -> Needs:
    needs = checked(Needs(**data))
    if needs.glibc is not None and not _GLIBC.fullmatch(needs.glibc):
        message = f"`{needs.glibc}` is no version of glibc"
        raise ValueError(message)
    return needs


def _member(data: dict[str, Any]) -> Member:
    member = checked(Member(**data))
    if not _SHA256.fullmatch(member.sha256) or member.size < 0:
        message = f"`{member.name}` has no size or sha256"
        raise ValueError(message)
    check_name(member.name)
    return member
