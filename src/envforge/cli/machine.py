"""`envforge machine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge machine --save workstation.json"


def command(
    context: typer.Context,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Also write it to a file, for `plan --machine`.")
    ] = None,
    json: Json = False,
) -> None:
    """GPUs, driver, CUDA, disk, Pythons, and ambient configuration that could leak in."""
    from envforge.forge.machine import machine  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = machine(opened, save=Path(save) if save is not None else None)
    finish(context, result, json=json)
