"""What conda itself wants to find in a prefix besides its packages: the history of what was asked, and variables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from envforge.model.repodata import said, subdir
from envforge.model.state import Distribution, State, packages, shown
from envforge.system import clock

from .pages import write_atomically

FOLDER = "conda-meta"


def history(prefix: Path, command: str, before: State, after: State, asked: Sequence[str]) -> None:
    """Append one transaction to ``conda-meta/history``, as conda writes and reads it. Raises OSError.

    Without that file, conda calls a prefix no environment; from ``asked``, `conda export --from-history` is made.
    """
    old, new = packages(before), packages(after)
    lines = [f"==> {clock.now()[:19].replace('T', ' ')} <==", f"# cmd: {command}"]
    lines += [
        f"-{_called(item)}" for name, item in old.items() if name not in new or _called(new[name]) != _called(item)
    ]
    lines += [
        f"+{_called(item)}" for name, item in new.items() if name not in old or _called(old[name]) != _called(item)
    ]
    lines.append(f"# update specs: {[*asked]!r}")
    file = prefix / FOLDER / "history"
    try:
        written = file.read_bytes()
    except FileNotFoundError:
        written = b""
    write_atomically(file, written + "".join(f"{line}\n" for line in lines).encode())


def _called(item: Distribution) -> str:
    """``conda-forge/linux-64::python-3.10.19-h3c07f61_2_cpython``."""
    place = f"{item.index or said(item).get('channel', 'unknown')}/{subdir(item)}"
    return f"{place}::{shown(item.name)}-{item.version}-{item.build}"


def state(prefix: Path, variables: Mapping[str, str]) -> None:
    """Let `conda activate` set ``variables``. Raises OSError."""
    text = json.dumps({"version": 1, "env_vars": dict(sorted(variables.items()))}, indent=2)
    write_atomically(prefix / FOLDER / "state", f"{text}\n".encode())


def changed(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Names of those of ``variables`` that `conda activate` does not set as they are.

    It writes names in upper case, and values between quotes of which it escapes none (double ones in csh and fish).
    """
    return tuple(name for name, value in variables.items() if name != name.upper() or "'" in value)
