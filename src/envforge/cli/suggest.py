"""`envforge suggest`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge suggest xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """What distributions import without requiring it, and the backfill step that brings it; nothing is run."""
    from envforge.forge.suggest import suggest  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = suggest(opened, environment)
    finish(context, result, json=json)
