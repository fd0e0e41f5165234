"""What decides which modules a Python of a prefix finds, in a few milliseconds: looked at before every launch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .sites import names, sites

_PYTHON = re.compile(r"python[0-9.]*(_pth)?|pyvenv\.cfg")
_AT_EVERY_START = frozenset({"sitecustomize.py", "usercustomize.py"})
_INSIDE = {".dist-info": "/RECORD", ".egg-info": "", ".pth": ""}


def stamp(prefix: Path) -> dict[str, str]:
    """The `Launch` of ``prefix`` (a symlink to it is resolved); nothing is raised, an absent prefix has none.

    The names in every site-packages; of them the RECORD of each ``.dist-info``, which every installer writes anew, the
    ``.pth`` files and what Python imports at every start also by size, mtime and inode, as pyvenv.cfg, ``bin/python*``
    with what Python reads beside that, and what conda packages have run at activation. No ctime: another environment
    that links to the same file moves it. ``__pycache__`` is left out, and with it the mtime of the folder that it is
    made in.
    """
    root = os.path.realpath(prefix)
    found = {path: _facts(f"{root}/{path}") for path in _starters(root)}
    for site in sites(root):
        try:
            # Through a descriptor every stat looks up a short name instead of the whole path.
            descriptor = os.open(f"{root}/{site}", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            for name in names(descriptor):
                if name != "__pycache__":
                    inside = "" if name in _AT_EVERY_START else _INSIDE.get(os.path.splitext(name)[1])  # noqa: PTH122
                    found[f"{site}/{name}"] = "" if inside is None else _facts(name + inside, descriptor)
        finally:
            os.close(descriptor)
    return found


def _starters(root: str) -> Iterator[str]:
    yield from (f"bin/{name}" for name in names(f"{root}/bin") if _PYTHON.fullmatch(name))
    # What conda packages have run at activation may say where modules are found.
    for folder in ("etc/conda/activate.d", "etc/conda/env_vars.d"):
        yield from (f"{folder}/{name}" for name in names(f"{root}/{folder}"))
    if os.path.lexists(f"{root}/pyvenv.cfg"):
        yield "pyvenv.cfg"


def _facts(path: str, folder: int | None = None) -> str:
    """``SIZE MTIME INODE`` of what lies there, a symlink not followed; ``absent`` where nothing does."""
    try:
        facts = os.lstat(path, dir_fd=folder)
    except OSError:
        return "absent"
    return f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ino}"
