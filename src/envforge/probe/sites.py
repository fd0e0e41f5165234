"""Where the site-packages of a prefix lie."""

from __future__ import annotations

import os
from collections.abc import Iterator


def sites(root: str) -> Iterator[str]:
    """Every site-packages, relative to the prefix ``root``; a lib64 that is a symlink to lib is the same one."""
    for lib in ("lib", "lib64"):
        if os.path.islink(f"{root}/{lib}"):  # noqa: PTH114 - text in, text out
            continue
        for python in names(f"{root}/{lib}"):
            site = f"{lib}/{python}/site-packages"
            if python.startswith(("python", "pypy")) and os.path.isdir(f"{root}/{site}"):  # noqa: PTH112
                yield site


def names(folder: str | int) -> list[str]:
    """What lies in a folder (its path, or a descriptor of it), sorted; nothing where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths
    except OSError:
        return []
