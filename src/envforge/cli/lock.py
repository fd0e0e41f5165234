"""`envforge lock`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge lock quickstart"


def command(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="ENV|PROFILE", help="An environment's name, or a profile.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Instead of NAME.pylock.toml here; - is stdout."),
    ] = None,
    json: Json = False,
) -> None:
    """Every file of an environment, or of a plan, by its sha256; for `create --lock`. Nothing is installed."""
    from envforge.forge.lock import STDOUT, lock  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = lock(opened, subject, output=output)
    finish(context, result, json=json, brief=True, text=result.data.text or None if output == STDOUT else None)
