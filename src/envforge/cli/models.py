"""`envforge models`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge models xinv100 --fetch"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch what is not there whole.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Hash every file of those that are there.")] = False,
    json: Json = False,
) -> None:
    """The models that its profile names: where each lies, how large, and whether it is whole."""
    from envforge.forge.models import models  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = models(opened, environment, fetch=fetch, check=check)
    finish(context, result, json=json)
