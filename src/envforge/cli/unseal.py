"""`envforge unseal`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge unseal xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """Open a sealed environment for changes by hand."""
    from envforge.forge.seal import unseal  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = unseal(opened, environment)
    finish(context, result, json=json, brief=True)
