"""`envforge path`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "cd $(envforge path xinv100)"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """The real path of an environment's current generation."""
    from envforge.forge.path import path  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = path(opened, environment)
    finish(context, result, json=json, text=f"{result.data.path}\n")
