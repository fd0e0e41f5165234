"""`envforge update`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge update xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    json: Json = False,
) -> None:
    """A new generation from the edited profile; leading steps that did not change come from the lock."""
    from envforge.forge.update import update  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = update(opened, environment)
    finish(context, result, json=json, brief=True)
