"""`envforge list`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge list --size"


def command(
    context: typer.Context,
    size: Annotated[bool, typer.Option("--size", help="Also the bytes of their own and shared with others.")] = False,
    json: Json = False,
) -> None:
    """Environments with their generation, profile and last verdict."""
    from envforge.forge.listing import listing  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = listing(opened, size=size)
    finish(context, result, json=json)
