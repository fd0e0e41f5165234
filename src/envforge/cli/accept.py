"""`envforge accept`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge accept xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """What is there today becomes a snapshot, if the guards hold."""
    from envforge.forge.accept import accept  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = accept(opened, environment)
    finish(context, result, json=json, brief=True)
