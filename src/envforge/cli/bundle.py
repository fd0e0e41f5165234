"""`envforge bundle`."""

from __future__ import annotations

from typing import Annotated

import typer

from envforge.model.errors import UsageError

from .session import Json, finish, shop

EXAMPLE = "envforge bundle xinv100 -o xinv100.tar --split 2G"


def command(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of ENV.tar here.")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="SIZE", help="In parts of at most SIZE, such as 2G: FILE.001, ...")
    ] = None,
    models: Annotated[
        bool, typer.Option("--models", help="With the models that its profile names, which must be in this home.")
    ] = False,
    json: Json = False,
) -> None:
    """One file that builds the environment on a host without a network: by `sh FILE`, or `create --bundle FILE`."""
    from envforge.forge.bundle import bundle, part_size  # noqa: PLC0415 - help need not pay for it

    if output == "-":
        raise UsageError("usage", "a bundle cannot be written to stdout", hint="name a file with `-o FILE`")
    size = part_size(split) if split is not None else None
    with shop(context) as opened:
        result = bundle(opened, environment, output=output, split=size, models=models)
    finish(context, result, json=json, brief=True)
