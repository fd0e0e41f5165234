"""`envforge smoke`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge smoke xinv100 --gpu 0"


def command(
    context: typer.Context,
    environments: Annotated[list[str], typer.Argument(metavar="ENV...", help="Names of environments.")],
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="LIST", help="The GPUs that the checks see: indexes, UUIDs or names; all; none."),
    ] = None,
    json: Json = False,
) -> None:
    """Run the smoke checks again in the environment in use; of several, what they generate side by side."""
    from envforge.forge.smoke import smoke  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = smoke(opened, environments, gpu=gpu)
    finish(context, result, json=json)
