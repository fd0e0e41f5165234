"""`envforge create`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envforge.model.errors import UsageError

from .session import Json, finish, shop

EXAMPLE = "envforge create quickstart --name first"


def command(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    profile: Annotated[
        str | None, typer.Argument(metavar="PROFILE", help="A profile's name or path; with --lock, the lock's own.")
    ] = None,
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
    lock: Annotated[
        str | None, typer.Option("--lock", metavar="FILE", help="Build what this lock holds, and resolve nothing.")
    ] = None,
    bundle: Annotated[
        str | None, typer.Option("--bundle", metavar="FILE", help="Build what this bundle holds, without a network.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan a profile, then build it step by step in a new generation and switch to it."""
    from envforge.forge.create import create  # noqa: PLC0415 - help need not pay for it
    from envforge.forge.profiles import find  # noqa: PLC0415 - as above

    if bundle is not None:
        if profile is not None or lock is not None or backend is not None:
            raise UsageError("usage", "a bundle brings its own profile and lock", hint="name neither beside `--bundle`")
        from envforge.forge.from_bundle import create_bundled  # noqa: PLC0415 - as above

        with shop(context, engine=engine) as opened:
            result = create_bundled(opened, Path(bundle), name=name, replace_it=replace, any_machine=any_machine)
        finish(context, result, json=json, brief=True)
    if profile is None and (lock is None or backend is not None):
        raise UsageError("usage", "name the profile to build", hint=f"for example `{EXAMPLE}`")
    with shop(context, engine=engine) as opened:
        found = find(opened, profile, backend=backend) if profile is not None else None
        if lock is not None:
            from envforge.forge.from_lock import create_locked  # noqa: PLC0415 - as above

            result = create_locked(opened, Path(lock), found, name=name, replace_it=replace, any_machine=any_machine)
            finish(context, result, json=json, brief=True)
        assert found is not None  # noqa: S101 - there is a profile where there is no lock
        result = create(
            opened,
            found,
            name=name if name is not None else found.name,
            replace=replace,
            any_machine=any_machine,
            no_build=no_build,
        )
    finish(context, result, json=json, brief=True)
