"""`envforge run`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, shop

EXAMPLE = "envforge run xinv100 -- python -c 'import torch'"


def command(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="A name under the profile's `commands`, or a command.")
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse if it changed since it last was in order, or none knows.")
    ] = False,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="LIST", help="The GPUs that it sees: indexes, UUIDs or names; `all`; `none`."),
    ] = None,
    wait_gpu: Annotated[
        str | None, typer.Option("--wait-gpu", metavar="SECONDS", help="Wait until they are there, as at boot.")
    ] = None,
    json: Json = False,
) -> None:
    """Run a command in an environment; its exit status and signals are its own (125, 126, 127: it never started)."""
    del json  # A command that runs has stdout for itself; only an error of envforge is told as JSON.
    from envforge.forge.run import run  # noqa: PLC0415 - help need not pay for it

    wait = None
    if wait_gpu is not None:
        from envforge.forge.choosing import seconds  # noqa: PLC0415 - as above

        wait = seconds(wait_gpu)
    with shop(context) as opened:
        run(opened, environment, words, strict=strict, gpu=gpu, wait=wait)
