"""`envforge profiles`."""

from __future__ import annotations

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge profiles"


def command(context: typer.Context, json: Json = False) -> None:
    """Which profiles there are, and which of this machine's GPUs each fits."""
    from envforge.forge.profiles import profiles  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = profiles(opened)
    finish(context, result, json=json)
