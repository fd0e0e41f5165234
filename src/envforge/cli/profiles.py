"""`envforge profiles`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge profiles"


def command(
    context: typer.Context,
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="FILE", help="Of a machine saved by `machine --save`.")
    ] = None,
    json: Json = False,
) -> None:
    """Which profiles there are, and which of this machine's GPUs each fits."""
    from envforge.forge.machine import load  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.profiles import profiles  # noqa: PLC0415 - as above

    with shop(context) as opened:
        result = profiles(opened, machine=load(Path(machine)) if machine is not None else None)
    finish(context, result, json=json)
