"""`envforge audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from envforge.model.errors import UsageError

from .session import Json, finish, shop

EXAMPLE = "envforge audit xinv100 --deep"


def command(  # noqa: PLR0917 - one parameter for each option that the command line has
    context: typer.Context,
    environment: Annotated[
        str | None, typer.Argument(metavar="ENV", help="An environment's name, or the path of any.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every environment, as for a timer.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash every file, not only what looks changed.")] = False,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="PROFILE", help="Judge by another profile than the recorded one.")
    ] = None,
    json: Json = False,
) -> None:
    """What is not as recorded, down to the files; nothing of the environment is run or written to."""
    from envforge.forge.audit import audit, audit_all  # noqa: PLC0415 - help need not pay for it

    if everything == (environment is not None):
        raise UsageError("usage", "name one environment or its path, or `--all`", hint=f"for example `{EXAMPLE}`")
    with shop(context) as opened:
        if environment is None:
            finish(context, audit_all(opened, deep=deep), json=json)
            return
        other = None
        if profile is not None:
            from envforge.forge.profiles import find  # noqa: PLC0415 - reading YAML, only for who asks

            other = find(opened, profile)
        finish(context, audit(opened, environment, deep=deep, profile=other), json=json)
