"""`envforge history`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge history xinv100 --verbose"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """Generations, snapshots, and what every step changed, opened and healed."""
    from envforge.forge.history import history  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = history(opened, environment)
    finish(context, result, json=json)
