"""`envforge create`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop

EXAMPLE = "envforge create quickstart --name first"


def command(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A profile's name or path.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="ENV", help="The environment's name, if not the profile's.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="A new generation from the start, though the name exists.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="uv|pip", help="Who installs what was resolved.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", metavar="venv|conda", help="Instead of the profile's.")
    ] = None,
    any_machine: Annotated[
        bool, typer.Option("--any-machine", help="Build it although no GPU here fits the profile.")
    ] = False,
    no_build: Annotated[bool, typer.Option("--no-build", help="Refuse sdists, whose code would have to run.")] = False,
    json: Json = False,
) -> None:
    """Plan a profile, then build it step by step in a new generation and switch to it."""
    from envforge.forge.create import create  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.profiles import find  # noqa: PLC0415 - as above

    with shop(context, engine=engine) as opened:
        found = find(opened, profile, backend=backend)
        result = create(
            opened,
            found,
            name=name if name is not None else found.name,
            replace=replace,
            any_machine=any_machine,
            no_build=no_build,
        )
    finish(context, result, json=json, brief=True)
