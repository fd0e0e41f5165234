"""`envforge show`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge show xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """What an environment is, built when and by whom, outdated or not, in use by which processes."""
    from envforge.forge.show import show  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = show(opened, environment)
    finish(context, result, json=json)
