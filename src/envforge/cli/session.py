"""What every verb does around its use case: the settings in, the answer out."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

from envforge.system import clock, environ

if TYPE_CHECKING:
    from envforge.forge.shop import Shop
    from envforge.model.result import Result

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]

_PROGRAM = "envforge"
_WIDTH = 100
_ASCII = str.maketrans({"→": "->", "✓": "+", "✗": "x", "≠": "!=", "…": "...", "·": "-"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """The options that stand for every verb; None or False where not given."""

    home: str | None = None
    config: str | None = None
    offline: bool = False
    quiet: bool = False
    verbose: bool = False


def given(context: typer.Context) -> Globals:
    found = context.find_object(Globals)
    return found if found is not None else Globals()


@contextmanager
def shop(context: typer.Context, *, engine: str | None = None) -> Iterator[Shop]:
    """The shop for a use case, with progress on stderr for as long as it works."""
    from envforge.forge.shop import Shop  # noqa: PLC0415 - a verb pays for its use case, help and version do not
    from envforge.profiles import settings  # noqa: PLC0415 - as above
    from envforge.report.progress import Teller  # noqa: PLC0415 - as above
    from envforge.store.layout import Home  # noqa: PLC0415 - as above

    options = given(context)
    merged = settings.load(
        {"home": options.home, "offline": options.offline, "engine": engine},
        Path(options.config) if options.config is not None else None,
    )
    teller = Teller(
        sys.stderr,
        clock=clock.monotonic,
        live=fancy(sys.stderr),
        quiet=options.quiet,
        verbose=options.verbose,
        width=width(sys.stderr),
    )
    with teller:
        yield Shop(settings=merged, home=Home(merged.home, merged.cache), tell=teller)


def finish(
    context: typer.Context, result: Result[Any], *, json: bool, brief: bool = False, text: str | None = None
) -> NoReturn:
    """Print the answer and leave with its exit status.

    ``brief``: with --quiet only findings are worth printing; ``text``: the answer to a person, if plain.
    """
    options = given(context)
    if json:
        from envforge.report.json import envelope  # noqa: PLC0415 - only who asks for it

        say(sys.stdout, envelope(result, result.command) + "\n")
    elif text is not None:
        say(sys.stdout, text)
    elif not (brief and options.quiet and not result.exit):
        from envforge.report.console import render  # noqa: PLC0415 - rich costs more than all the rest

        say(
            sys.stdout,
            render(
                result,
                width=width(sys.stdout),
                color=fancy(sys.stderr) and fancy(sys.stdout),
                verbose=options.verbose,
                program=program(options.home),
            ),
        )
    raise typer.Exit(result.exit)


def say(stream: TextIO, text: str) -> None:
    """Write all of ``text`` now; signs that the stream's encoding lacks are spelled out."""
    encoding = (stream.encoding or "").lower().replace("_", "-")
    stream.write(text if encoding.startswith("utf") else text.translate(_ASCII))
    stream.flush()


def fancy(stream: TextIO) -> bool:
    """Whether colour and animation are welcome there."""
    variables = environ.variables()
    return stream.isatty() and not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"


def program(home: str | None) -> str:
    """What the user types to start envforge in this home: the command, or the script that started it and says so."""
    started = environ.variables().get("ENVFORGE_PROGRAM") or _PROGRAM
    words = [
        _PROGRAM if started == shutil.which(_PROGRAM) else started,
        *(["--home", home] if home is not None else []),
    ]
    return shlex.join(words)


def starter(context: typer.Context, home: Path) -> tuple[str, ...]:
    """The words by which another program starts envforge for ``home``, an absolute path first."""
    started = Path(environ.variables().get("ENVFORGE_PROGRAM") or sys.argv[0])
    itself = started.is_file() and os.access(started, os.X_OK) and started.suffix != ".py"
    words = (str(started.absolute()),) if itself else (sys.executable, "-m", _PROGRAM)
    config = given(context).config
    return (*words, "--home", str(home.absolute()), *(("--config", str(Path(config).absolute())) if config else ()))


def width(stream: TextIO) -> int:
    """Columns of the terminal behind ``stream``, or as many as COLUMNS says; 100 where there is neither."""
    wanted = environ.variables().get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except (OSError, ValueError):
        return _WIDTH
