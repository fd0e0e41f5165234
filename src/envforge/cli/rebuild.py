"""`envforge rebuild`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge rebuild xinv100"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    fresh: Annotated[
        bool, typer.Option("--fresh", help="From the profile as its file reads now, resolved anew.")
    ] = False,
    no_build: Annotated[bool, typer.Option("--no-build", help="Refuse sdists, whose code would have to run.")] = False,
    json: Json = False,
) -> None:
    """A new generation from the recorded lock, then the switch; the old one stays."""
    from envforge.forge.rebuild import rebuild  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = rebuild(opened, environment, fresh=fresh, no_build=no_build)
    finish(context, result, json=json, brief=True)
