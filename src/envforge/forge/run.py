"""Start a command in an environment: it takes the place of envforge, with its own status and signals."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.profile import Profile
from envforge.model.progress import Listener, Note
from envforge.system import environ, process

from . import inside, launching
from .activating import activated
from .path import current
from .profiles import recorded
from .shop import Shop

# What would bring in other modules.
_LEAKS = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__")
_SOCKS = "socks://"


class NotExecutableError(EnvforgeError):
    """The command is there and cannot be executed: exit 126, as a shell would."""

    exit = 126


class NotFoundError(EnvforgeError):
    """There is no such command: exit 127, as a shell would."""

    exit = 127


def run(
    shop: Shop,
    name: str,
    command: Sequence[str],
    *,
    strict: bool = False,
    gpu: str | None = None,
    wait: float | None = None,
) -> NoReturn:
    """Become ``command``, or what the profile calls so, inside the real path of the generation in use.

    What changed since the environment last was in order is told; ``strict``: then, or where nobody knows, refuse.
    ``gpu``, ``wait`` (seconds): see `choosing.variables`. Raises UsageError, EnvforgeError ``no-generation``,
    ``changed-since-audit``, ``never-audited`` or ``gpu-not-there``, NotExecutableError or NotFoundError; else never
    returns.
    """
    if not command:
        raise UsageError("usage", "there is no command to run", hint=f"as in `envforge run {name} python`")
    generation, prefix = current(shop.home, name)
    profile = recorded(shop.home, name, generation)
    argv = expand(profile, command)
    changed = launching.changed(shop.home, name, generation, prefix)
    if strict:
        _insist(name, changed)
    elif changed:
        text = f"`{name}` changed since it last was in order: {changed}; `envforge audit {name}` tells all"
        shop.tell(Note(text=text, level="warning"))
    # Only now: in one of conda's, packages' own code may run here.
    host = proxied({key: value for key, value in environ.variables().items() if key not in _LEAKS}, shop.tell)
    host[inside.MODELS] = str(shop.home.models)
    given = profile.variables
    # Asking for cards takes a tenth of a second: a profile that is for none need not pay.
    if profile.gpu is not None or gpu is not None or wait is not None:
        from .choosing import variables as chosen  # noqa: PLC0415 - as above

        given = {**given, **chosen(shop, profile, {**host, **given}, gpu=gpu, wait=wait)}
    variables = activated(host, prefix, name, given, shop.tell)
    program = find(argv[0], variables["PATH"], profile)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these two and an exec keeps that: a command would never die of a closed pipe.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        process.replace([program, *argv[1:]], env=variables)
    except OSError as error:
        raise _refused(program, error) from error


def proxied(variables: Mapping[str, str], tell: Listener) -> dict[str, str]:
    """``variables`` with ``socks5://`` where a proxy says ``socks://``, which is told (``proxy-scheme``)."""
    changed = {
        name: f"socks5://{variables[name][len(_SOCKS) :]}"
        for lower in environ.PROXY_NAMES
        for name in (lower, lower.upper())
        if variables.get(name, "").lower().startswith(_SOCKS)
    }
    if changed:
        names = ", ".join(f"${name}" for name in changed)
        tell(Note(text=f"`socks://`, which most libraries refuse, is passed as `socks5://` in {names} (proxy-scheme)"))
    return {**variables, **changed}


def _insist(name: str, changed: str | None) -> None:
    """Raise unless nothing ``changed`` (as `launching.changed` tells it)."""
    if changed is None:
        raise EnvforgeError(
            "never-audited",
            f"nothing is known of a time when `{name}` was in order",
            cause="no audit of it has ended without an error yet, or what one remembered is gone",
            hint=f"`envforge audit {name}` says what is wrong; where nothing is, that is remembered",
        )
    if changed:
        raise EnvforgeError(
            "changed-since-audit",
            f"`{name}` changed since it last was in order",
            cause=changed,
            hint=f"`envforge audit {name}` tells all, and where it finds nothing wrong the command may start again; "
            f"`envforge repair {name}` puts it right",
        )


def expand(profile: Profile, command: Sequence[str]) -> tuple[str, ...]:
    """A name under the profile's ``commands`` stands for its words; what follows it is added."""
    return (*profile.commands.get(command[0], (command[0],)), *command[1:])


def find(program: str, search: str, profile: Profile) -> str:
    """The path of ``program``; raises NotFoundError or NotExecutableError."""
    found = shutil.which(program, path=search)
    if found is not None:
        return str(Path(found).absolute())
    places = [program] if "/" in program else [f"{folder}/{program}" for folder in search.split(os.pathsep) if folder]
    for place in places:
        if Path(place).exists():
            kind = "a folder" if Path(place).is_dir() else "not executable"
            raise NotExecutableError("not-executable", f"`{place}` is {kind}")
    names = ", ".join(f"`{name}`" for name in profile.commands)
    raise NotFoundError(
        "command-not-found",
        f"there is no command `{program}` in the environment or in PATH",
        hint=f"the profile has these commands: {names}" if names else None,
    )


def _refused(program: str, error: OSError) -> EnvforgeError:
    if error.errno == errno.ENOENT:
        # The file was found a moment ago, so what is missing is what its first line names.
        return NotFoundError(
            "command-not-found",
            f"`{program}` cannot be started",
            cause=f"its interpreter{_interpreter(program)} is not there",
        )
    return NotExecutableError("not-executable", f"`{program}` cannot be started", cause=error.strerror)


def _interpreter(program: str) -> str:
    with suppress(OSError):
        with Path(program).open("rb") as stream:
            line = stream.readline(512)
        if line.startswith(b"#!"):
            return f" `{line[2:].decode(errors='replace').strip()}`"
    return ""
