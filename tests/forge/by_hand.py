"""Environments that envforge did not build: real ones, filled by uv from wheels in a folder, or by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kit.cli import PYTHON
from kit.wheels import Wheel

from envforge.engines import uv
from envforge.model.profile import Profile
from envforge.profiles import loader
from envforge.system import environ

PROFILE = f"""\
schema: 1
name: mine
python: "{PYTHON}"
steps:
  - {{name: base, install: [six]}}
"""


def profile(text: str = PROFILE) -> Profile:
    return loader.loads(text, "/profiles/mine.yaml")


def made(place: Path, *wheels: Wheel, by_uv: bool = False) -> Path:
    """A virtual environment without pip, made by venv or by uv, that holds ``wheels``; returns its site-packages."""
    maker = [uv.binary(), "venv", "-q", "--python", sys.executable] if by_uv else [sys.executable, "-m", "venv"]
    call([*maker, str(place)] if by_uv else [*maker, "--without-pip", str(place)])
    add(place, *wheels)
    return site(place)


def add(place: Path, *wheels: Wheel) -> None:
    """Install ``wheels`` with uv, and nothing that they require."""
    folder = place.parent / f"{place.name}-wheels"
    folder.mkdir(exist_ok=True)
    for wheel in wheels:
        (folder / wheel.filename).write_bytes(wheel.bytes())
    files = [str(folder / wheel.filename) for wheel in wheels]
    if files:
        # Copies: the cache of uv is shared with nobody's other environment.
        how = ["--reinstall", "--no-deps", "--no-index", "--link-mode=copy", f"--cache-dir={folder / 'cache'}"]
        call([uv.binary(), "pip", "install", "-q", f"--python={place / 'bin/python'}", *how, *files])


def call(argv: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
    subprocess.run(argv, check=True, env=environ.hermetic(variables))


def site(place: Path) -> Path:
    return next((place / "lib").glob("python*")) / "site-packages"


def stamps(root: Path) -> dict[str, tuple[int, int, int, int]]:
    """What nobody can touch unseen: of ``root`` and of all in it size, mtime, ctime and mode."""
    facts = {str(path): path.lstat() for path in (root, *root.rglob("*"))}
    return {path: (it.st_size, it.st_mtime_ns, it.st_ctime_ns, it.st_mode) for path, it in facts.items()}
