"""`envforge diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge diff xinv100/2.1 xinv100/2.3"


def command(
    context: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="A snapshot (`ENV/G.K`), or ENV for its present state.")],
    after: Annotated[
        str | None, typer.Argument(metavar="B", help="Another; left out: from the last snapshot of A to now.")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="Down to the file.")] = False,
    json: Json = False,
) -> None:
    """What differs between two snapshots, or between a snapshot and the present state."""
    from envforge.forge.diff import diff  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = diff(opened, before, after, files=files)
    finish(context, result, json=json)
