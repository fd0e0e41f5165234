"""`envforge rollback`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge rollback xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    snapshot: Annotated[
        str | None, typer.Argument(metavar="SNAPSHOT", help="A snapshot (`ENV/G.K`) or a generation (`ENV/G`).")
    ] = None,
    json: Json = False,
) -> None:
    """Back to the generation before, or to the state after any step."""
    from envforge.forge.rollback import rollback  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = rollback(opened, environment, snapshot)
    finish(context, result, json=json, brief=True)
