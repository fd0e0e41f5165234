"""The files that conda reads its configuration from, and the folders in which they let it look for environments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from envforge.system import environ

from .places import home

_ENVS = ("envs_dirs", "envs_path")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def files() -> tuple[Path, ...]:
    """Where conda would look for them, there or not, the last with the highest priority."""
    variables = environ.variables()
    user = home()
    config = Path(variables.get("XDG_CONFIG_HOME") or user / ".config")
    folders = [Path("/etc/conda"), Path("/var/lib/conda"), config / "conda", user / ".conda"]
    if program := variables.get("CONDA_EXE"):
        folders.insert(2, Path(program).parent.parent)
    found = [file for folder in folders for file in _inside(folder)]
    found.append(user / ".condarc")
    if prefix := variables.get("CONDA_PREFIX"):
        found += _inside(Path(prefix))
    if named := variables.get("CONDARC"):
        found.append(Path(named))
    return tuple(dict.fromkeys(found))


def _inside(folder: Path) -> Iterator[Path]:
    yield from (folder / "condarc", folder / ".condarc", *sorted((folder / "condarc.d").glob("*.y*ml")))


def envs_dirs() -> tuple[str, ...]:
    """The folders that are configured, the first with the highest priority; those that conda adds itself left out.

    What cannot be read configures nothing.
    """
    variables = environ.variables()
    found = [
        folder
        for name in _ENVS
        for folder in (variables.get(f"CONDA_{name.upper()}") or "").split(os.pathsep)
        if folder
    ]
    for file in reversed(files()):
        try:
            found += parse(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else ()
        except OSError:
            continue
    return tuple(dict.fromkeys(expanded(folder, variables) for folder in found))


def parse(text: str) -> tuple[str, ...]:
    """The folders that one such file names."""
    if not any(name in text for name in _ENVS):
        return ()
    import yaml  # noqa: PLC0415 - only where somebody configured it

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return ()
    values = [document.get(name) for name in _ENVS] if isinstance(document, dict) else []
    return tuple(str(folder) for value in values if isinstance(value, list) for folder in value)


def expanded(path: str, variables: Mapping[str, str]) -> str:
    """``path`` as conda reads it: with its variables and a leading ``~`` replaced, absolute."""
    text = _REFERENCE.sub(lambda found: variables.get(found[1] or found[2], found[0]), path)
    if text == "~" or text.startswith("~/"):
        text = f"{home()}{text[1:]}"
    return os.path.normpath(Path(text).absolute())
