"""An environment that envforge did not build, as its own files tell of it; nothing of it is run."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .conda_meta import is_environment

_VERSION = re.compile(r"3\.\d+(\.\d+)?((a|b|rc)\d+)?")
_PATCH = "import _virtualenv"  # all of a .pth of virtualenv's


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """``prefix`` is a real path, ``backend`` venv or conda, ``python`` its version, as full as it is known."""

    prefix: Path
    backend: str
    python: str


def recognise(path: Path) -> Foreign | None:
    """The environment at ``path`` (a symlink to one is resolved); None where there is none. Nothing is raised."""
    prefix = Path(os.path.realpath(path))
    settings = _text(prefix / "pyvenv.cfg")
    if settings is not None and not is_environment(prefix):
        python = _setting(settings) or _folder(prefix)
        return None if python is None else Foreign(prefix=prefix, backend="venv", python=python)
    if (prefix / "conda-meta").is_dir():
        python = _package(prefix) or _folder(prefix)
        return None if python is None else Foreign(prefix=prefix, backend="conda", python=python)
    return None


def own_code(prefix: Path) -> frozenset[str]:
    """Paths (POSIX, relative) of code that whoever makes environments puts there, as far as it is just that."""
    found = prefix.glob("lib*/python*/site-packages/_virtualenv.pth")
    return frozenset(path.relative_to(prefix).as_posix() for path in found if (_text(path) or "").strip() == _PATCH)


def _setting(text: str) -> str | None:
    """The version in a pyvenv.cfg: ``version`` of venv, ``version_info`` of virtualenv and uv."""
    pairs = {
        key.strip().lower(): value.strip() for key, _, value in (line.partition("=") for line in text.splitlines())
    }
    found = (_VERSION.match(pairs.get(key, "")) for key in ("version_info", "version"))
    return next((match[0] for match in found if match), None)


def _package(prefix: Path) -> str | None:
    """The version of the package python in conda-meta."""
    for path in sorted((prefix / "conda-meta").glob("python-3*.json")):
        try:
            data = json.loads(_text(path) or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and data.get("name") == "python" and _VERSION.match(str(data.get("version"))):
            return str(data["version"])
    return None


def _folder(prefix: Path) -> str | None:
    """The version in the name of the one folder ``lib/python3.10``."""
    names = {path.parent.name.removeprefix("python") for path in prefix.glob("lib/python3.*/site-packages")}
    return names.pop() if len(names) == 1 else None


def _text(path: Path) -> str | None:
    try:
        # A planted pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - a descriptor, not a path
            return stream.read()
    except OSError:
        return None
