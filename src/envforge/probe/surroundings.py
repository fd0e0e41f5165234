"""What leaks into a prefix from the host, and code in it that runs by itself and that nobody owns."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from envforge.model.drift import Surroundings
from envforge.system import environ

from . import ambient
from .installed import canonical, is_info
from .sites import names

_AT_EVERY_START = frozenset({"sitecustomize", "usercustomize"})
_MODULES = (".py", ".so", ".pyc")
# Beside its executable Python looks for these first: for what a venv is, and for the whole module path.
_OF_PYTHON = re.compile(r"pyvenv\.cfg|python[0-9.]*\._pth")
_LIBRARIES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT")
_TOLD_APART = frozenset({"$PYTHONPATH", *(f"${name}" for name in _LIBRARIES)})


def entries(paths: Iterable[str]) -> frozenset[str]:
    """What `look` needs to know of ``paths``: scripts in ``bin``, and whatever lies at the top of a site-packages."""
    return frozenset("/".join(path.split("/", 4)[:4]) for path in paths)


def look(prefix: Path, known: Collection[str]) -> Surroundings:
    """The surroundings of the environment at ``prefix``, as this process and its user have them.

    ``known``: paths (POSIX, relative) that a RECORD owns or the snapshot knows, or their `entries`. Nothing is run,
    nothing raised.
    """
    root = Path(os.path.realpath(prefix))
    variables = environ.variables()
    visible = system_site(root)
    sites = _sites(root)
    looks_there = visible is not False and not variables.get("PYTHONNOUSERSITE")
    user_site = _user_site(sites) if looks_there else None
    shadowed = _distributions(user_site) & set().union(*map(_distributions, sites)) if user_site else set()
    leaks = ambient.look()
    return Surroundings(
        system_site=visible is True,
        user_site=str(user_site) if user_site else None,
        shadowed=tuple(sorted(shadowed)),
        pythonpath=tuple(filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))),
        libraries={name: value for name in _LIBRARIES if (value := variables.get(name))},
        proxies=tuple(item.source.removeprefix("$") for item in leaks if item.tool == "proxy"),
        ambient=tuple(item for item in leaks if item.tool != "proxy" and item.source not in _TOLD_APART),
        unowned=tuple(sorted(_unowned(root, sites, frozenset(known)))),
    )


def system_site(root: Path) -> bool | None:
    """Whether pyvenv.cfg lets the base Python's packages in; None where there is none, as with conda."""
    try:
        text = (root / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    settings = (line.partition("=") for line in text.splitlines())
    # As Python reads it: the last one counts, and without one they are let in.
    values = [
        value.strip().lower() for key, _, value in settings if key.strip().lower() == "include-system-site-packages"
    ]
    return not values or values[-1] == "true"


def _sites(root: Path) -> list[Path]:
    found = {path.resolve() for path in root.glob("lib*/python*/site-packages") if path.is_dir()}
    return sorted(path for path in found if path.is_relative_to(root))


def _user_site(sites: list[Path]) -> Path | None:
    """Where Python looks for what the user installed for it; None where nothing lies there."""
    variables = environ.variables()
    base = Path(variables.get("PYTHONUSERBASE") or Path(variables.get("HOME") or "~").expanduser() / ".local")
    found = (base / "lib" / site.parent.name / "site-packages" for site in sites)
    return next((folder for folder in found if names(str(folder))), None)


def _distributions(site: Path) -> set[str]:
    return {canonical(name.rpartition(".")[0].partition("-")[0]) for name in names(str(site)) if is_info(name)}


def _unowned(root: Path, sites: list[Path], known: frozenset[str]) -> Iterator[str]:
    for site in sites:
        place = site.relative_to(root).as_posix()
        above, start = f"{place}/", len(place) + 1
        tops = {path[start:].partition("/")[0] for path in known if path.startswith(above)}
        modules = {_module(top) for top in tops if _is_importable(top)}
        for name in names(str(site)):
            module = _module(name)
            if name in tops or name == "__pycache__" or is_info(name) or name.startswith("~"):
                continue
            at_start = name.endswith(".pth") or module in _AT_EVERY_START
            if at_start or (module in modules and _is_code(site / name)):
                yield f"{place}/{name}"
    # A script in `bin` finds its neighbours before the standard library and all that is installed.
    installed = {_module(name) for site in sites for name in names(str(site)) if _is_code(site / name)}
    for name in names(str(root / "bin")):
        module = _module(name)
        shadows = module in installed or module in sys.stdlib_module_names
        runs = _OF_PYTHON.fullmatch(name) or (shadows and _is_importable(name) and "." in name)
        if runs and f"bin/{name}" not in known:
            yield f"bin/{name}"


def _module(name: str) -> str:
    """What an entry of a folder is imported as: `x` for `x`, `x.py`, `x.cpython-310-x86_64-linux-gnu.so`."""
    return name.partition(".")[0]


def _is_importable(name: str) -> bool:
    return "." not in name or name.endswith(_MODULES)


def _is_code(path: Path) -> bool:
    """Whether Python would import it: a module, or a folder with one (a folder of data gives way to any module)."""
    # Not by the methods of a path, which raise where a folder cannot be entered.
    if os.path.isdir(path):  # noqa: PTH112
        return any(os.path.exists(path / f"__init__{suffix}") for suffix in _MODULES)  # noqa: PTH110
    return path.name.endswith(_MODULES)
