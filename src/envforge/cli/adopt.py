"""`envforge adopt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge adopt ~/venvs/serving --profile xinv100 --name serving"


def command(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder of a venv or conda environment.")],
    profile: Annotated[
        str, typer.Option("--profile", metavar="PROFILE", help="Its guards, and what a next generation is built from.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="ENV", help="The environment's name, if not the profile's.")
    ] = None,
    json: Json = False,
) -> None:
    """Take an environment that envforge did not build under its care, as it is; nothing in it is changed."""
    from envforge.forge.adopt import adopt  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.profiles import find  # noqa: PLC0415 - as above

    with shop(context) as opened:
        result = adopt(opened, Path(path), find(opened, profile), name=name)
    finish(context, result, json=json, brief=True)
