"""`envforge export`."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import Json, finish, shop, starter

EXAMPLE = "envforge export xinv100 --format requirements -o requirements.txt"


def command(  # noqa: PLR0917 - one parameter for each option that the command line has
    context: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="pylock, requirements, script, dockerfile, environment-yml, systemd, kernelspec, conda-explicit or "
            "conda-lock.",
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PATH", help="A file, or the folder of several.")
    ] = None,
    named: Annotated[
        str | None, typer.Option("--command", metavar="NAME", help="Of the profile's commands: for systemd.")
    ] = None,
    json: Json = False,
) -> None:
    """An environment as a file of another tool; what that cannot carry is told."""
    from envforge.forge.export import Wish, export  # noqa: PLC0415 - help need not pay for it
    from envforge.report.exports import RENDERERS  # noqa: PLC0415 - as above

    with shop(context) as opened:
        result = export(
            opened,
            environment,
            Wish(form=form, command=named, output=output),
            renderers=RENDERERS,
            program=starter(context, opened.home.root),
            several=json,
        )
    text = None if result.data.written else "".join(result.data.files.values())
    finish(context, result, json=json, brief=True, text=text)
