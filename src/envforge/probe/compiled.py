"""Which files of a prefix are compiled code, and what is read of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from envforge.model.native import Elf
from envforge.model.state import FileRow

from . import elf

_LIBRARY = re.compile(r".+\.so(?:\.[\w.]+)?")
_HEADER = 64  # bytes: what is smaller is no ELF file


def candidates(rows: Iterable[FileRow]) -> tuple[str, ...]:
    """The paths of ``rows`` that may be compiled code by their name: libraries, and what has no ending (programs)."""
    return named(row.path for row in rows if row.link is None and row.size >= _HEADER)


def named(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of ``paths`` that may be compiled code by their name alone."""
    return tuple(path for path in paths if _may_be(path, path[path.rfind("/") + 1 :]))


def _may_be(path: str, name: str) -> bool:
    if "." not in name:
        return ".dist-info/" not in path
    return ".so" in name and _LIBRARY.fullmatch(name) is not None


def read(prefix: Path, paths: Iterable[str]) -> dict[str, Elf]:
    """Each of ``paths`` (relative to ``prefix``) that is an ELF file -> what is in it. Nothing is raised."""
    root = os.path.realpath(prefix)
    return {path: elf.read(f"{root}/{path}") for path in paths if elf.is_elf(f"{root}/{path}")}
