"""`envforge plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge plan xinv100 --machine workstation.json"


def command(
    context: typer.Context,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A profile's name or path.")],
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="FILE", help="Plan for a machine saved by `machine --save`.")
    ] = None,
    no_build: Annotated[
        bool, typer.Option("--no-build", help="Refuse sdists whose code would have to run for the plan.")
    ] = False,
    json: Json = False,
) -> None:
    """What each step would change, and the verdict of every guard; nothing is installed."""
    from envforge.forge.machine import load  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.plan import plan  # noqa: PLC0415 - as above
    from envforge.forge.profiles import find  # noqa: PLC0415 - as above

    with shop(context) as opened:
        where = load(Path(machine)) if machine is not None else None
        result = plan(opened, find(opened, profile), machine=where, no_build=no_build)
    finish(context, result, json=json)
