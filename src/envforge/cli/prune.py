"""`envforge prune`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge prune --dry-run"


def command(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    in_use: Annotated[bool, typer.Option("--in-use", help="Also what processes use.")] = False,
    json: Json = False,
) -> None:
    """Remove failed and old generations, and what of the cache nothing refers to."""
    from envforge.forge.prune import prune  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = prune(opened, dry_run=dry_run, used=in_use)
    finish(context, result, json=json, brief=not dry_run)
