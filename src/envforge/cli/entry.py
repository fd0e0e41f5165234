"""From words to an exit status: what happens around every command, and what becomes of its errors."""

from __future__ import annotations

import errno
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from envforge import __version__
from envforge.model.errors import EnvforgeError, InterruptedByUserError, UsageError
from envforge.system import environ

from .words import Words, arrange

_RUN_FAILED = 125
_RUN_KEEPS = frozenset({126, 127, 130})
_CLOSED_PIPE = 141
_ARCHITECTURES = frozenset({"x86_64", "aarch64"})
_ANYWHERE = frozenset({"machine", None})
_GOES_ON = "nothing in use was changed; the same command again goes on or starts clean, and says which"
_AFTERWARDS = {
    "create": _GOES_ON,
    "update": _GOES_ON,
    "rebuild": _GOES_ON,
    "rollback": _GOES_ON,
    "bundle": "what was fetched is kept, and the same command again goes on",
    "prune": "no generation in use was touched; the same command again finishes",
    "remove": "what is left of it `envforge list` shows; the same command again finishes",
}
_HINTS = {
    errno.ENOSPC: "free some space there, then try again",
    errno.EDQUOT: "free some of your quota there, then try again",
    errno.EACCES: "make it accessible, or choose another place with `--home`",
    errno.EROFS: "choose a place that can be written with `--home`",
}


def execute(argv: Sequence[str]) -> int:
    """Do it, tell what went wrong, and return the exit status; never raises but for an exit that typer wants."""
    _prepare()
    first = next((word for word in argv if not word.startswith("-")), None)
    words = Words(arguments=tuple(argv), verb=first, json="--json" in argv, asks_for_help=False)
    try:
        try:
            words = arrange(argv)
            return _answer(words)
        except BrokenPipeError:
            return _silence()
        except (EnvforgeError, KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - the last stop for every error
            return _tell(_as_error(error, words), words)
    except BrokenPipeError:
        return _silence()
    except KeyboardInterrupt:
        return InterruptedByUserError.exit


def _answer(words: Words) -> int:
    if "--version" in words.arguments and not words.asks_for_help and _is_global("--version", words):
        sys.stdout.write(f"envforge {__version__}\n")
        sys.stdout.flush()
        return 0
    if not words.asks_for_help and words.verb not in _ANYWHERE:
        _refuse_other_systems()
    from .app import invoke  # noqa: PLC0415 - the version need not pay for typer

    if not words.arguments:
        invoke(["--help"])
        return UsageError.exit
    return invoke(words.arguments)


def _is_global(option: str, words: Words) -> bool:
    """Whether the option stands before the verb, where `arrange` puts all that count."""
    end = words.arguments.index(words.verb) if words.verb is not None else len(words.arguments)
    return option in words.arguments[:end]


def _refuse_other_systems() -> None:
    system, architecture = environ.operating_system(), environ.architecture()
    if system != "Linux" or architecture not in _ARCHITECTURES:
        raise EnvforgeError(
            "unsupported-system", f"envforge works on Linux on x86_64 and aarch64, this is {system} on {architecture}"
        )


def _prepare() -> None:
    """Names that are no valid text must not break a message, and SIGTERM must end like Ctrl-C, with its cleaning."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    with suppress(ValueError):  # Not in the main thread: whoever calls from there has handlers of its own.
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Who was started with a signal ignored (nohup) keeps it ignored.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)


def _as_error(error: BaseException, words: Words) -> EnvforgeError:
    if isinstance(error, EnvforgeError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return InterruptedByUserError("interrupted", "interrupted", hint=_AFTERWARDS.get(words.verb or ""))
    usage = _as_usage(error, words)
    if usage is not None:
        return usage
    if isinstance(error, OSError) and error.strerror:
        place = f": `{error.filename}`" if error.filename is not None else ""
        return EnvforgeError("system-refused", f"{error.strerror.lower()}{place}", hint=_HINTS.get(error.errno or 0))
    return EnvforgeError(
        "internal-error",
        f"internal error: {type(error).__name__}: {error}".replace("\n", " "),
        hint=f"this is a fault of envforge; its trace is in `{_save(error)}`",
    )


def _as_usage(error: BaseException, words: Words) -> UsageError | None:
    """What typer says of a wrong command line, in our words; None for anything else."""
    typer = sys.modules.get("typer")
    if typer is None or not isinstance(error, typer.TyperException):
        return None
    message = " ".join(error.format_message().split()).replace("'", "`").rstrip(".")
    verb = f" {words.verb}" if words.verb else ""
    return UsageError("usage", message[:1].lower() + message[1:], hint=f"see `envforge{verb} --help`")


def _save(error: BaseException) -> str:
    """Keep the trace in a file of its own and return its path."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="envforge-", suffix=".log", delete=False, encoding="utf-8") as log:
            log.write(text)
    except OSError:
        return "no file, since none could be written"
    return str(Path(log.name))


def _tell(error: EnvforgeError, words: Words) -> int:
    """Say it on stderr and, where JSON is wanted, on stdout; returns the exit status."""
    from .session import fancy, say  # noqa: PLC0415 - as above

    head, hint = ("\x1b[1;31merror:\x1b[0m", "\x1b[36mhint:\x1b[0m") if fancy(sys.stderr) else ("error:", "hint:")
    lines = [f"{head} {error.message}"]
    if error.cause:
        lines += [f"  {line}" for line in error.cause.splitlines()]
    if error.hint:
        lines.append(f"  {hint} {error.hint}")
    say(sys.stderr, "\n".join(lines) + "\n")
    if words.json:
        from envforge.report.json import envelope  # noqa: PLC0415 - only who asks for it

        say(sys.stdout, envelope(error, words.verb) + "\n")
    if words.verb == "run" and error.exit not in _RUN_KEEPS:
        return _RUN_FAILED
    return error.exit


def _silence() -> int:
    """Whoever read our output has gone: say no more, not even while the interpreter flushes at its end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.close()
    return _CLOSED_PIPE
