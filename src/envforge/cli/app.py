"""The command line as typer sees it: global options, and verbs that are loaded when they are asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from envforge.model.errors import UsageError
from envforge.system import environ

from .session import Globals

VERBS = (
    "profiles", "machine", "plan", "create", "update", "list", "show", "path", "history", "diff", "inspect",
    "audit", "suggest", "smoke", "repair", "accept", "adopt", "import", "rebuild", "rollback", "run", "models", "seal",
    "unseal", "lock", "export", "bundle", "prune", "remove",
)  # fmt: skip


_MODULES = {"import": "import_"}  # a word of Python names no module
_PROGRAM = "envforge"
_COMPLETION = "_ENVFORGE_COMPLETE"
_FOR_ALL = "For every command: --home DIR, --config FILE, --offline, --quiet, --verbose; see envforge --help."


class _AsTyped:
    """A word of the command line is text (a flag a bool) already: no converter need be built, nor pydantic loaded."""

    def coerce(self, value: Any, **_: Any) -> Any:
        return value


def _light(params: list[Any]) -> list[Any]:
    for param in params:
        param.get_runtime_param = _AsTyped
        if getattr(param, "is_flag", False):
            param.metavar = ""  # A flag takes no value, so its help names none.
        if param.param_type_name == "argument":
            # Every argument is text: the name alone says it, without braces or type.
            param.get_usage_pieces = partial(_usage, param)
            param.display_type_rich = lambda ctx: ""  # noqa: ARG005 - typer passes it by name
    return params


def _usage(param: Any, ctx: Any) -> list[str]:
    del ctx
    return [param.metavar if param.required else f"[{param.metavar}]"]


class Verb(TyperCommand):
    """One verb; every parameter is a text, a list of texts or a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _light(super().get_params(ctx))


class Verbs(TyperGroup):
    """The verbs, each in a module of its own that is imported when the verb is used."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _light(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in VERBS:
            close = difflib.get_close_matches(cmd_name, VERBS, n=3)
            raise UsageError(
                "unknown-command",
                f"there is no command `{cmd_name}`",
                hint=f"did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else "see `envforge --help`",
            )
        module = importlib.import_module(f"envforge.cli.{_MODULES.get(cmd_name, cmd_name)}")
        single = typer.Typer(add_completion=False)
        single.command(
            cmd_name,
            cls=Verb,
            epilog=f"{_FOR_ALL}\n\nExample: {module.EXAMPLE}",
            context_settings={"help_option_names": ["-h", "--help"]},
        )(module.command)
        return get_command(single)


def options(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    home: Annotated[
        str | None, typer.Option("--home", metavar="DIR", help="Where environments lie (ENVFORGE_HOME).")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="The configuration, instead of the user's.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use what the cache has, and no network.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no messages but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Everything: each addition, each remark.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Environments from declarative profiles, one per GPU: planned, built step by step, watched after each step."""
    del version  # Answered before typer is loaded; it stands here for the help.
    context.obj = Globals(home=home, config=config, offline=offline, quiet=quiet, verbose=verbose)


def invoke(arguments: Sequence[str]) -> int:
    """Do what the words say and return the exit status; errors and signals come out as they are."""
    group = build()
    if _COMPLETION in environ.variables():
        group.main(list(arguments), prog_name=_PROGRAM)
    try:
        # Not through `main`, which answers a Ctrl-C and a closed pipe in its own way.
        with group.make_context(_PROGRAM, list(arguments)) as context:
            group.invoke(context)
    except typer.Exit as left:
        return left.exit_code
    return 0


def build() -> Verbs:
    """The whole command line."""
    app = typer.Typer(
        cls=Verbs,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Example: envforge create quickstart",
    )
    app.callback()(options)
    group = get_command(app)
    if not isinstance(group, Verbs):
        message = "typer made no group of the verbs"
        raise TypeError(message)
    return group
