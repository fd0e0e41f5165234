"""`envforge inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge inspect xinv100 --machine workstation.json"


def command(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="ENV|WHEEL|PATH", help="An environment, the folder of one, or a wheel's file.")
    ],
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="FILE", help="Judge for the GPUs of a saved machine.")
    ] = None,
    json: Json = False,
) -> None:
    """For which GPUs compiled files carry code, and which libraries and symbols they lack; nothing of them is run."""
    from envforge.forge.inspect import inspect  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.machine import load  # noqa: PLC0415 - as above

    with shop(context) as opened:
        where = load(Path(machine)) if machine is not None else None
        result = inspect(opened, what, machine=where)
    finish(context, result, json=json)
