"""`envforge seal`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge seal xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """Make an environment read-only, with its bytecode compiled beforehand."""
    from envforge.forge.seal import seal  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = seal(opened, environment)
    finish(context, result, json=json, brief=True)
