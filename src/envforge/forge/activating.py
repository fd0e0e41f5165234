"""The variables of a process in an environment: a venv's, or what conda and the packages' own scripts make of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from envforge.model.progress import Listener, Note
from envforge.probe import conda_meta
from envforge.probe.sites import names
from envforge.system import process

_OF_OTHERS = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_PROMPT_MODIFIER")
"""What tells of an environment that is active around this process."""

_FOLDER = "etc/conda"
_LIMIT = 60.0  # seconds for one script
# In a shell of its own, which begins with nothing but the variables; the script sees no arguments.
_SOURCE = """\
_script=$1 _out=$2 _env=$3
set --
. "$_script" </dev/null >&2
_status=$?
"$_env" -0 >"$_out"
exit $_status
"""
# What every shell sets anew.
_SHELLS_OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})
# Files that a shell would read first.
_STARTUP = ("BASH_ENV", "ENV")


def activated(
    base: Mapping[str, str], prefix: Path, name: str, given: Mapping[str, str], tell: Listener
) -> dict[str, str]:
    """``base`` with ``given`` and the environment ``name`` at ``prefix`` activated; ``given`` has the last word.

    In one of conda's, what its packages want to be set or run at activation is, as `conda activate` does it; a script
    that fails is told.
    """
    variables = {key: value for key, value in base.items() if key not in _OF_OTHERS}
    variables.update(given)
    variables["PATH"] = os.pathsep.join([str(prefix / "bin"), variables.get("PATH") or os.defpath])
    if not conda_meta.is_environment(prefix):
        return {**variables, "VIRTUAL_ENV": str(prefix)}
    variables.update({"CONDA_PREFIX": str(prefix), "CONDA_DEFAULT_ENV": name})
    variables.update(_declared(prefix, tell))
    # The packages' scripts see what the profile sets, and cannot change it.
    kept = {key: value for key, value in given.items() if key != "PATH"}
    variables.update(kept)
    for script in _listed(prefix, "activate.d", ".sh"):
        variables = {**_sourced(script, prefix, variables, tell), **kept}
    return variables


def _listed(prefix: Path, folder: str, ending: str) -> list[Path]:
    place = prefix / _FOLDER / folder
    return [place / name for name in names(str(place)) if name.endswith(ending)]


def _declared(prefix: Path, tell: Listener) -> Iterator[tuple[str, str]]:
    """Variables that packages only name; conda writes their names in upper case."""
    for file in _listed(prefix, "env_vars.d", ""):
        try:
            found = json.loads(file.read_bytes())
            yield from [(str(key).upper(), str(value)) for key, value in found.items()]
        except (OSError, ValueError, AttributeError) as error:
            tell(_failed(file, prefix, f"it holds no variables: {error}"))


def _sourced(script: Path, prefix: Path, variables: Mapping[str, str], tell: Listener) -> dict[str, str]:
    """``variables`` as ``script`` leaves them; as they were where the shell does not come back from it."""
    # Many of them are written for bash, whatever they are called.
    shell = shutil.which("bash", path=os.defpath) or "/bin/sh"
    env = shutil.which("env", path=os.defpath) or "env"
    begin = {key: value for key, value in variables.items() if key not in _STARTUP}
    with tempfile.TemporaryDirectory(prefix="envforge-activate-") as folder:
        out = Path(folder) / "variables"
        try:
            done = process.run([shell, "-c", _SOURCE, "sh", str(script), str(out), env], env=begin, timeout=_LIMIT)
            found = dict(_pairs(out.read_bytes())) if out.exists() else None
        except OSError as error:
            tell(_failed(script, prefix, str(error)))
            return dict(variables)
    said = done.tail(1)
    if found is None:
        tell(_failed(script, prefix, f"{done.ending()}{f': {said}' if said else ''}"))
        return dict(variables)
    if not done.ok and said:
        # A last test that does not hold is no failure; one that complains is.
        tell(_failed(script, prefix, f"{done.ending()}: {said}"))
    outside = {key: value for key, value in variables.items() if key in {*_SHELLS_OWN, *_STARTUP}}
    return {**{key: value for key, value in found.items() if key not in _SHELLS_OWN}, **outside}


def _pairs(data: bytes) -> Iterator[tuple[str, str]]:
    for row in data.split(b"\0"):
        name, sign, value = row.partition(b"=")
        if sign:
            yield os.fsdecode(name), os.fsdecode(value)


def _failed(file: Path, prefix: Path, why: str) -> Note:
    place = file.relative_to(prefix).as_posix()
    return Note(text=f"`{place}`, which activates what a conda package brought, fails: {why}", level="warning")
