"""A conda environment that is small: three packages of a channel on loopback, and two wheels of an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engines.house import House
from kit import packages
from kit.channel import Channel
from kit.index import Index, serve
from kit.server import Server, Site
from kit.wheels import Wheel

PYTHON = packages.python()
TOOL = packages.prefixed("tool", "1.0")
HELLO = packages.module("hello", "1.0")
NEWER = packages.module("hello", "2.0")
SIX = Wheel(name="six", version="1.0.0")
IDNA = Wheel(name="idna", version="3.0", requires=("six",))
STEPS: Sequence[Mapping[str, Any]] = (
    {"name": "six", "install": ["six"]},
    {"name": "hello", "conda": ["hello ==1.0"]},
    {"name": "idna", "install": ["idna"]},
)


@contextmanager
def served(*, auth: str | None = None) -> Iterator[Server]:
    """A channel ``forge`` and an index ``pypi``."""
    sites: dict[str, Site] = {
        "forge": Channel(packages=[PYTHON, TOOL, HELLO, NEWER], auth=auth),
        "pypi": Index(artefacts=[SIX, IDNA]),
    }
    with serve(sites) as server:
        yield server


def house(root: Path, server: Server, **settings: Any) -> House:
    root.mkdir(exist_ok=True)
    return House(root, server, only=["pypi"], **settings)


def options(server: Server, *specs: str) -> dict[str, Any]:
    """What a profile says besides its steps. ``specs``: the packages before the first; ``tool`` where none is given."""
    return {"backend": "conda", "conda": {"channels": [server.url("forge")], "packages": [*(specs or ("tool",))]}}
