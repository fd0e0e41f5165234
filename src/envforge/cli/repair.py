"""`envforge repair`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge repair xinv100 --dry-run"


def command(
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    in_use: Annotated[bool, typer.Option("--in-use", help="Even though a process runs from it.")] = False,
    json: Json = False,
) -> None:
    """Put right in place what drifted, and only that; then audit: its verdict is the exit status."""
    from envforge.forge.repair import repair  # noqa: PLC0415 - help need not pay for it

    with shop(context) as opened:
        result = repair(opened, environment, dry_run=dry_run, in_use=in_use)
    finish(context, result, json=json, brief=True)
