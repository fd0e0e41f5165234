"""The condas of this user, and where they look for an environment by its name; none of them is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from envforge.system import environ

from . import condarc
from .places import conda_bases, home


@dataclass(frozen=True, slots=True, kw_only=True)
class Condas:
    """``roots``: where a conda is installed; empty = none was found. ``configured``: the folders of environments that
    the user's configuration names, ``fixed`` those that conda looks into after them; each in its order, absolute.
    """

    roots: tuple[str, ...]
    configured: tuple[str, ...]
    fixed: tuple[str, ...]

    @property
    def envs_dirs(self) -> tuple[str, ...]:
        """All of them, in the order in which conda looks for a name."""
        return tuple(dict.fromkeys((*self.configured, *self.fixed)))


def look() -> Condas:
    """Nothing is raised: what cannot be read tells nothing."""
    roots = tuple(dict.fromkeys(os.path.realpath(root) for root in _candidates() if _is_root(root)))
    own = str(home() / ".conda" / "envs")
    fixed = [folder for root in roots for folder in _fixed(root, own)]
    return Condas(roots=roots, configured=condarc.envs_dirs(), fixed=tuple(dict.fromkeys([*fixed, own])))


def registry() -> Path:
    """The file in which conda lists the user's environments."""
    return home() / ".conda" / "environments.txt"


def listed(text: bytes) -> list[str]:
    """The environments that a registry lists."""
    lines = (os.fsdecode(line.strip()) for line in text.split(b"\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _candidates() -> Iterator[Path]:
    variables = environ.variables()
    if program := variables.get("CONDA_EXE"):
        yield Path(program).parent.parent
    if prefix := variables.get("CONDA_PREFIX"):
        yield Path(prefix)
    with suppress(OSError):
        yield from map(Path, listed(registry().read_bytes()))
    yield from conda_bases()


def _is_root(place: Path) -> bool:
    return any(os.access(place / path, os.X_OK) for path in ("condabin/conda", "bin/conda"))


def _fixed(root: str, own: str) -> Iterable[str]:
    """What conda does not let its user write to comes later."""
    folder = f"{root}/envs"
    return (folder, own) if os.access(f"{root}/conda-meta/history", os.W_OK) else (own, folder)
