"""`envforge remove`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge remove xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    in_use: Annotated[bool, typer.Option("--in-use", help="Remove it although processes use it.")] = False,
    json: Json = False,
) -> None:
    """Remove an environment: its link, its generations and its records."""
    from envforge.forge.remove import remove  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = remove(opened, environment, in_use=in_use)
    finish(context, result, json=json, brief=True)
