"""A user's home with environments of the backend conda in it, built from the kit's channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit import packages
from kit.channel import Channel, Package
from kit.cli import Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

DEMO = packages.module("demo", "1.0", files={"demo/__init__.py": "x = 1\n"})
SIX = Wheel(name="six", version="1.0.0")


@contextmanager
def house(root: Path, *more: Package, **options: Any) -> Iterator[tuple[Cli, Server]]:
    """A home, and a server of the channel ``forge`` and the index ``pypi``, which has six; ``options``: of the Cli.

    The channel has a Python, demo, prefixed and ``more``.
    """
    channel = Channel(packages=[packages.python(), DEMO, packages.prefixed(), *more])
    with serve({"forge": channel, "pypi": Index(artefacts=[SIX])}) as server:
        yield Cli(root=root, **options), server


def profile(
    cli: Cli, server: Server, *specs: str, steps: Sequence[Any] = ({"name": "six", "install": ["six"]},), **more: Any
) -> None:
    """Write the profile `demo` of backend conda, with the packages ``specs`` in its base."""
    conda = {"channels": [server.url("forge")], "packages": [*specs]}
    cli.profile(server.url("pypi"), steps, backend="conda", conda=conda, **more)
