"""Makes the environment that a lock file describes: ``environment.py ENV LOCK [--source DIR]``.

Run by ``bootstrap.sh`` with whatever Python 3.11 or newer the machine has, so the standard library must do.
``ENV`` is made at its final place and counts once its file ``complete`` is there, which is written last: an
environment whose making was interrupted is made again from nothing. Of many starts at once one does the work.

Everything said goes to stderr. Exit 0: it is there. Exit 1: it is not, and the last line says what to do.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import IO, NoReturn
from urllib.parse import urlsplit

# Of pip's configuration only what says where files come from and how to get there is kept. A constraint, a target
# folder or `user = true` has a meaning for other work, and would break an installation of exactly what is locked.
_KEPT = (
    "cache-dir", "cert", "client-cert", "default-timeout", "extra-index-url", "find-links", "index-url",
    "keyring-provider", "no-cache-dir", "no-index", "proxy", "retries", "timeout", "trusted-host",
)  # fmt: skip
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_DAY = 24 * 60 * 60


class BootstrapError(Exception):
    """What is told in one line."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="make the environment that a lock file describes")
    parser.add_argument("environment", type=Path)
    parser.add_argument("lock", type=Path)
    parser.add_argument("--source", type=Path, help="a folder to import from, as an editable install does")
    asked = parser.parse_args(arguments)
    # the child is ended too, as after Ctrl-C
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        ensure(asked.environment.absolute(), asked.lock, asked.source)
    except KeyboardInterrupt:
        say("interrupted; the next start makes the environment anew")
        return 130
    except BootstrapError as failure:
        say(str(failure))
        return 1
    except OSError as error:
        say(f"cannot make {asked.environment}: {error.strerror or error}")
        return 1
    return 0


def ensure(environment: Path, lock: Path, source: Path | None) -> None:
    """Make ``environment`` unless it is there. Raises BootstrapError, or OSError where the disk refuses."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    with (environment.parent / "lock").open("a", encoding="utf-8") as held:
        _wait_for(held)
        if not _is_complete(environment):
            _make(environment, lock, source, held)


def say(text: str) -> None:
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _wait_for(held: IO[str]) -> None:
    """Children inherit the file, so that the lock ends with the last of them, not with this process."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another start is making the environment; waiting for it")
        fcntl.flock(held, fcntl.LOCK_EX)


def _is_complete(environment: Path) -> bool:
    return (environment / "complete").exists() and os.access(environment / "bin" / "python", os.X_OK)


def _make(environment: Path, lock: Path, source: Path | None, held: IO[str]) -> None:
    if environment.exists():
        shutil.rmtree(environment)
    # the real path: a `python3` that means another version tomorrow must not change this environment
    _run([os.path.realpath(sys.executable), "-I", "-m", "venv", str(environment)], dict(os.environ), held)
    python = environment / "bin" / "python"
    settings = read_settings(_output([str(python), "-I", "-m", "pip", "config", "list"]))
    variables = pip_variables(settings, dict(os.environ))
    locked = sum("==" in line for line in lock.read_text(encoding="utf-8").splitlines())
    say(
        f"installing {locked} locked packages for Python {platform.python_version()} into "
        f"{os.path.relpath(environment)}, from {origins(settings)}, {proxies(variables)}"
    )
    install = [
        *("install", "--require-hashes", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"),
        *("--requirement", str(lock)),
    ]
    # not -I, which would keep PYTHONPATH and so the SOCKS support out; -P and -s are the rest of it
    _run([str(python), "-P", "-s", "-m", "pip", "--no-input", *install], variables, held)
    if source is not None:
        _link(environment, source)
    _complete(environment)


def _link(environment: Path, source: Path) -> None:
    """Let the environment import from ``source``, and give it the command; nothing needs to be built for that."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / version / "site-packages"
    (packages / "envforge-source.pth").write_text(f"{source.absolute()}\n", encoding="utf-8")
    command = environment / "bin" / "envforge"
    python = shlex.quote(str(environment / "bin" / "python"))
    command.write_text(f'#!/bin/sh\nexec {python} -I -m envforge "$@"\n', encoding="utf-8")
    command.chmod(0o755)


def _complete(environment: Path) -> None:
    """Declare ``environment`` done, link ``KIND`` to it, and remove those of its kind that it replaces.

    One that is younger than a day stays, since somebody may still be running in it.
    """
    (environment / "complete").touch()
    kind, dash, _ = environment.name.rpartition("-")
    if not dash:
        return
    link = environment.with_name(kind)
    new = environment.with_name(f"{kind}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(environment.name)
    new.replace(link)
    for other in environment.parent.glob(f"{kind}-*"):
        if other != environment and other.stat().st_mtime < time.time() - _DAY:
            shutil.rmtree(other, ignore_errors=True)


def read_settings(listing: str) -> dict[str, str]:
    """What ``pip config list`` says about where files come from: name -> value.

    pip lists what is in force once per section; a command's own section goes before ``global``, the process
    environment before both.
    """
    settings: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for line in listing.splitlines():
            key, equals, value = line.partition("=")
            name = key.removeprefix(f"{section}.")
            if equals and name != key and name in _KEPT:
                settings[name] = str(ast.literal_eval(value))
    return settings


def pip_variables(settings: dict[str, str], inherited: dict[str, str]) -> dict[str, str]:
    """The environment for pip: the ``settings`` that are kept and nothing else of its configuration."""
    variables = {
        name: _socks(value) if name.lower() in _PROXIES else value
        for name, value in inherited.items()
        if not name.startswith(("PIP_", "PYTHON"))
    }
    for name, value in settings.items():
        variables[f"PIP_{name.upper().replace('-', '_')}"] = _socks(value) if name == "proxy" else value
    variables["PIP_CONFIG_FILE"] = os.devnull
    variables["PYTHONPATH"] = str(Path(__file__).resolve().with_name("pip-socks"))
    return variables


def _socks(proxy: str) -> str:
    """``socks://`` is what desktops write for SOCKS 5 with names looked up by the proxy; pip knows only ``socks5h``."""
    scheme, separator, rest = proxy.partition("://")
    return f"socks5h://{rest}" if separator and scheme.lower() == "socks" else proxy


def origins(settings: dict[str, str]) -> str:
    """Where packages come from, in words, without credentials."""
    words = []
    if settings.get("no-index", "").lower() not in {"1", "true", "yes", "on"}:
        words.append(_bare(settings["index-url"]) if "index-url" in settings else "pip's default index")
        words += [_bare(url) for url in settings.get("extra-index-url", "").split()]
    words += [_bare(place) for place in settings.get("find-links", "").split()]
    configured = settings.keys() & {"index-url", "extra-index-url", "find-links", "no-index"}
    return (", ".join(words) or "nowhere") + (" (pip's configuration)" if configured else "")


def proxies(variables: dict[str, str]) -> str:
    """Which proxy is in force, in words, without credentials."""
    found = {_bare(value) for name, value in variables.items() if name.lower() in _PROXIES and value}
    if "PIP_PROXY" in variables:
        found = {_bare(variables["PIP_PROXY"])}
    return f"through the proxy {' and '.join(sorted(found))}" if found else "without a proxy"


def _bare(url: str) -> str:
    """``url`` without user, password and query."""
    if "://" not in url:
        return url.rpartition("@")[2]
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no words"]
        message = f"pip cannot read its configuration: {last[0]}"
        raise BootstrapError(message)
    return done.stdout


def _run(command: list[str], variables: dict[str, str], held: IO[str]) -> None:
    """Run ``command`` to its end; what it says is shown as one line that changes, and in full if it fails."""
    said: deque[str] = deque(maxlen=200)
    live = sys.stderr.isatty()
    with subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(held.fileno(),),
    ) as child:
        try:
            for line in child.stdout or ():
                said.append(line.rstrip())
                if live:
                    width = shutil.get_terminal_size().columns - 1
                    print(f"\r\x1b[K{said[-1].strip()[:width]}", end="", file=sys.stderr, flush=True)
        except BaseException:
            child.terminate()
            raise
        finally:
            if live:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if child.returncode:
        print("\n".join(line for line in said if line), file=sys.stderr)
        raise BootstrapError(_remedy(command, "\n".join(said)))


def _remedy(command: list[str], said: str) -> str:
    if "venv" in command:
        return f"`{command[0]} -m venv` failed, see above; set ENVFORGE_PYTHON to another Python 3.11 or newer"
    if "DO NOT MATCH THE HASHES" in said:
        return "an index or a `find-links` of pip's configuration serves other files than the locked ones, see above"
    if "No matching distribution" in said:
        return (
            "an index lacks a locked file for this Python, see above; set ENVFORGE_PYTHON to another, or PIP_INDEX_URL"
        )
    return "pip failed, see above; its index and proxy are those that `pip config list` and the *_proxy variables say"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
