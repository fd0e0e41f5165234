"""CUDA toolkits on disk, by their own files: nothing of them is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from envforge.model.machine import Toolkit
from envforge.system import environ

_USUAL = Path("/usr/local")
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


def look(usual: Path = _USUAL) -> tuple[Toolkit, ...]:
    """Those that variables name, then ``cuda*`` in ``usual``; each once, by its real path."""
    found: dict[Path, str] = {}
    for place, how in _places(usual):
        real = place.resolve()
        if real.is_dir():
            found.setdefault(real, how)
    return tuple(Toolkit(path=str(path), version=version(path), how=how) for path, how in found.items())


def _places(usual: Path) -> Iterator[tuple[Path, str]]:
    for name in _VARIABLES:
        value = environ.variables().get(name)
        if value:
            yield Path(value), name
    yield from ((path, "usual") for path in sorted(usual.glob("cuda*")))


def version(folder: Path) -> str | None:
    """As ``version.json`` (since 11.1), ``version.txt`` (before) or ``cuda.h`` has it."""
    try:
        found = json.loads((folder / "version.json").read_bytes())["cuda"]["version"]
        return found if isinstance(found, str) else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    told = re.search(r"CUDA Version (\d+(?:\.\d+)+)", _text(folder / "version.txt"))
    if told is not None:
        return told[1]
    number = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", _text(folder / "include" / "cuda.h"))
    return f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}" if number is not None else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
