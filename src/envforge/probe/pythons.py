"""Which Pythons are there, and the one that fits a wish."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.machine import Interpreter
from envforge.system import environ

from . import interpreter
from .places import Candidate, candidates

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_EXACT = re.compile(r"3(\.\d+){0,2}")


def everything() -> tuple[Interpreter, ...]:
    """All base Pythons that work and have a GIL, in order of preference; each is run once, but the own one."""
    found: dict[str, Interpreter] = {}
    for candidate in candidates():
        python = _look(candidate)
        if python is not None:
            found.setdefault(python.path, python)
    return tuple(found.values())


def find(version: str) -> Interpreter:
    """The Python for ``3.10``, ``3.10.13`` or a PEP 440 specifier (``>=3.11``).

    First choice is ENVFORGE_PYTHON, then the one that runs envforge, then the newest that fits. Only those whose name
    does not speak against it are run. Raises EnvforgeError ``python-not-found``, UsageError ``invalid-python``.
    """
    wanted = _specifier(version)
    for candidate in sorted(candidates(), key=_preference):
        if _may_fit(candidate, version, wanted):
            python = _look(candidate)
            if python is not None and wanted.contains(python.version, prereleases=True):
                return python
    raise _not_found(version)


def fits(python: str, version: str) -> bool:
    """Whether a Python of the version ``python`` is what ``version`` asks for, see `find`. Raises UsageError.

    Of one whose micro version is not known the minor must do.
    """
    wanted = _specifier(version)
    return wanted.contains(python, prereleases=True) or (
        python.count(".") == 1 and any(wanted.contains(f"{python}.{micro}", prereleases=True) for micro in range(40))
    )


def _specifier(version: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 - paid only by a search

    text = version.strip()
    if _EXACT.fullmatch(text):
        text = f"=={text}" if text.count(".") > 1 else f"=={text}.*"
    try:
        # An empty specifier would accept any Python: here it is a mistake.
        return SpecifierSet(text or "?")
    except InvalidSpecifier as error:
        raise UsageError(
            "invalid-python",
            f"`{version}` is no Python version",
            hint="write `3.10`, `3.10.13` or a specifier such as `>=3.11`",
        ) from error


def _preference(candidate: Candidate) -> tuple[int, list[int]]:
    first = {"ENVFORGE_PYTHON": 0, "envforge": 1}.get(candidate.how, 2)
    # One whose name says nothing comes before all others: it must be run to know.
    return (first, [-part for part in candidate.guess])


def _may_fit(candidate: Candidate, version: str, wanted: SpecifierSet) -> bool:
    guess = candidate.guess
    if len(guess) > 2:
        return wanted.contains(".".join(map(str, guess)), prereleases=True)
    if guess and _EXACT.fullmatch(version.strip()):
        parts = [int(part) for part in version.strip().split(".")]
        return list(guess[: len(parts)]) == parts[: len(guess)]
    return True


def _look(candidate: Candidate) -> Interpreter | None:
    if candidate.how == "envforge":
        return Interpreter(path=candidate.path, version=platform.python_version(), how="envforge")
    try:
        data = interpreter.ask(candidate.path)
    except EnvforgeError:
        return None
    unusual = data["free_threaded"] or data["implementation"] != "cpython"
    if unusual and candidate.how != "ENVFORGE_PYTHON":
        return None
    return Interpreter(path=str(data["base"]), version=str(data["version"]), how=candidate.how)


def _not_found(version: str) -> EnvforgeError:
    found = everything()
    there = ", ".join(f"{python.version} (`{python.path}`)" for python in found) or "none"
    named = environ.variables().get("ENVFORGE_PYTHON")
    if named and not any(python.how == "ENVFORGE_PYTHON" for python in found):
        there += f"; `ENVFORGE_PYTHON` names `{named}`, which does not work"
    exact = _EXACT.fullmatch(version.strip())
    minor = ".".join(version.strip().split(".")[:2]) if exact else ""
    ways = [f"`uv python install '{version}'`"]
    if minor:
        ways += [f"`apt install python{minor}`", f"`conda create -n py{minor.replace('.', '')} python={version}`"]
    ways.append("or set `ENVFORGE_PYTHON` to the path of one")
    return EnvforgeError(
        "python-not-found",
        f"no Python `{version}` is there",
        cause=f"looked at `ENVFORGE_PYTHON`, `PATH`, pyenv, conda, uv, /usr, /usr/local and /opt; found {there}",
        hint=f"get one: {', '.join(ways)}",
    )
