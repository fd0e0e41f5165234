"""`envforge import`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge import environment.yml -o server.yaml"


def command(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What another tool reads, such as requirements.txt or a shell script.")
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PROFILE", help="Write to this file, which must not exist.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What the profile is called.")] = None,
    json: Json = False,
) -> None:
    """A first profile from another tool's file, with comments on what was assumed and what is not carried over."""
    from envforge.forge.importing import import_file  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = import_file(opened, file, output=output, name=name)
    finish(context, result, json=json, brief=True, text=result.data.profile if output is None else None)
