"""Shared libraries outside of an environment, as the system's loader finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from envforge.model.native import Elf
from envforge.system import environ, process

from . import elf

_LIMIT = 10.0
_PROGRAMS = ("/sbin/ldconfig", "/usr/sbin/ldconfig")
_CACHE = "/etc/ld.so.cache"
_LINE = re.compile(r"\t(\S+) \((.*)\) => (/.*)")
_TAGS: Final = {"x86_64": "x86-64", "aarch64": "AArch64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLibraries:
    """``cache``: name -> path, as `ldconfig -p` prints it; ``folders``: where the loader looks besides."""

    cache: Mapping[str, str]
    folders: tuple[str, ...]
    read: dict[str, Elf] = field(default_factory=dict, compare=False)

    def find(self, name: str, folders: Iterable[str] = ()) -> str | None:
        """The real path of the library ``name``, looked for in ``folders`` first; None where there is none."""
        if "/" in name:
            return self._there(name) if name.startswith("/") else None
        first = (self._there(f"{folder}/{name}") for folder in folders)
        last = (self._there(f"{folder}/{name}") for folder in self.folders)
        return (
            next(filter(None, first), None)
            or (self._there(self.cache[name]) if name in self.cache else None)
            or next(filter(None, last), None)
        )

    def elf(self, path: str) -> Elf:
        if path not in self.read:
            self.read[path] = elf.read(path)
        return self.read[path]

    def _there(self, path: str) -> str | None:
        real = os.path.realpath(path)
        return real if os.path.isfile(real) and self.elf(real).trouble is None else None  # noqa: PTH113 - text


def look() -> HostLibraries:
    """Ask `ldconfig`, which writes nothing then; without one only the usual folders are known."""
    architecture = environ.architecture()
    roots = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    folders = (*roots, f"/lib/{architecture}-linux-gnu", f"/usr/lib/{architecture}-linux-gnu")
    for program in _PROGRAMS:
        try:
            answer = process.run([program, "-p"], env=environ.hermetic(), timeout=_LIMIT)
        except OSError:
            continue
        return HostLibraries(cache=parse(answer.stdout, architecture), folders=folders)
    return HostLibraries(cache={}, folders=folders)


def parse(text: str, architecture: str) -> Mapping[str, str]:
    """Name -> path, of what is for ``architecture``; the first of a name is the one that is loaded."""
    tag = _TAGS.get(architecture)
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and (tag is None or tag in match[2].replace(" ", "").split(",")):
            found.setdefault(match[1], match[3])
    return found


def stamp() -> tuple[int, ...]:
    """What differs once the system's libraries are others."""
    try:
        facts = os.stat(_CACHE)  # noqa: PTH116 - as everywhere in probe
    except OSError:
        return ()
    return (facts.st_size, facts.st_mtime_ns, facts.st_ino)
