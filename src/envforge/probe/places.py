"""Where Pythons lie on a host: paths and guesses from their names; nothing is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from envforge.system import environ

_NAME = re.compile(r"python(3(\.\d+)?)?")
_VERSION = re.compile(r"(?<![\d.])(3(?:\.\d+){1,2})(?![\d.]*t\b)")
_CONDA_HOMES = (
    "miniconda3", "miniconda", "anaconda3", "anaconda", "miniforge3", "miniforge", "mambaforge", "micromamba",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Perhaps a Python. ``guess``: what its name says of its version, empty if nothing."""

    path: str
    how: str
    guess: tuple[int, ...] = ()


def candidates() -> Iterator[Candidate]:
    """Every place that could be a base Python, each real file once, in order of preference."""
    seen: set[str] = set()
    for path, how in _found():
        real = os.path.realpath(path)
        if real in seen or not _is_program(real, script=how == "ENVFORGE_PYTHON"):
            continue
        seen.add(real)
        yield Candidate(path=real, how=how, guess=_guess(real))


def own() -> Candidate:
    """The base interpreter of the Python that runs envforge."""
    # Private, but the only name that leads from a virtual environment to the executable it was made from.
    path = getattr(sys, "_base_executable", None) or sys.executable
    return Candidate(path=os.path.realpath(path), how="envforge", guess=tuple(sys.version_info[:3]))


def home() -> Path:
    """The user's home folder."""
    return Path(environ.variables().get("HOME") or "~").expanduser()


def _found() -> Iterator[tuple[Path, str]]:
    variables = environ.variables()
    named = variables.get("ENVFORGE_PYTHON")
    if named:
        yield Path(named).expanduser().absolute(), "ENVFORGE_PYTHON"
    yield Path(own().path), "envforge"
    for folder in variables.get("PATH", "").split(os.pathsep):
        if folder:
            yield from ((path, "PATH") for path in _pythons(Path(folder)))
    pyenv = Path(variables.get("PYENV_ROOT") or home() / ".pyenv")
    yield from ((path, "pyenv") for path in _inside((pyenv / "versions").glob("*")))
    yield from ((path, "conda") for path in _inside(conda_bases()))
    data = Path(variables.get("XDG_DATA_HOME") or home() / ".local" / "share")
    managed = Path(variables.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    yield from ((path, "uv") for path in _inside(managed.glob("*")))
    for root in (Path("/usr"), Path("/usr/local"), Path("/opt"), *Path("/opt").glob("python*")):
        yield from ((path, str(root)) for path in _inside((root, *root.glob("*ython*"))))


def conda_bases() -> Iterator[Path]:
    """Where a conda may be installed."""
    program = environ.variables().get("CONDA_EXE")
    if program:
        yield Path(program).parent.parent
    for name in _CONDA_HOMES:
        yield home() / name
        yield Path("/opt") / name
    yield Path("/opt/conda")


def _inside(prefixes: Iterable[Path]) -> Iterator[Path]:
    for prefix in sorted(prefixes):
        if not (prefix / "pyvenv.cfg").exists():
            yield from _pythons(prefix / "bin")


def _pythons(folder: Path) -> list[Path]:
    """What is called like a Python in a folder, the longest (most telling) names first."""
    if (folder.parent / "pyvenv.cfg").exists():
        return []
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return []
    return sorted(found, key=lambda path: (-len(path.name), path.name))


def _is_program(path: str, *, script: bool) -> bool:
    """Whether it is an executable; scripts (the shims of pyenv) choose a Python by the folder they are started in."""
    try:
        if not os.access(path, os.X_OK) or not Path(path).is_file():
            return False
        with Path(path).open("rb") as stream:
            return script or stream.read(2) != b"#!"
    except OSError:
        return False


def _guess(path: str) -> tuple[int, ...]:
    """The longest version that the file's name or a folder above it tells."""
    guesses = [tuple(int(part) for part in found.split(".")) for found in _VERSION.findall(path)]
    name = [guess for guess in guesses if path.endswith("python" + ".".join(map(str, guess)))]
    if name:
        agreeing = [guess for guess in guesses if guess[:2] == name[0][:2]]
        return max(agreeing, key=len)
    return guesses[-1] if guesses else ()
