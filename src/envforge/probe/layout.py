"""The files of a distribution as Python sees them: modules, packages, and where in a namespace its own begins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .installed import Info

_ASIDE = frozenset({"test", "tests", "example", "examples", "benchmark", "benchmarks", "conftest"})
_ASIDE_AT_TOP = frozenset({"build_backend", "doc", "docs", "samples", "scripts", "setup"})
"""What is there for who works on a package, and not for who imports it."""

_NAMESPACE = re.compile(rb"\b(extend_path|declare_namespace)\(")
_DEEPEST = 4  # parts of a namespace's name
_SMALL = 4096  # bytes: an `__init__` that only opens a namespace has no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``files``: module -> its path in the prefix and its hash as a RECORD writes it, without what is compiled, which
    Python prefers; ``packages``: the modules that are folders; ``roots``: all below which is this distribution's own;
    ``starts``: the roots that are meant by the package itself.
    """

    files: Mapping[str, tuple[str, str]]
    packages: frozenset[str]
    roots: tuple[str, ...]
    starts: tuple[str, ...]


def layout(root: str, info: Info, files: Mapping[str, str], bases: Iterable[str] = ()) -> Layout:
    """``files``: path in the prefix ``root`` -> hash; ``bases``: folders there from which Python imports besides.

    Modules for tests, examples and benchmarks are left out.
    """
    starts = tuple(f"{base}/" for base in (*sorted(bases, reverse=True), info.site))
    modules: dict[str, tuple[str, str]] = {}
    compiled: set[str] = set()
    packages: set[str] = set()
    for path, said in sorted(files.items(), key=_folders_first):
        start = next((start for start in starts if path.startswith(start)), None)
        named = _module(path[len(start) :]) if start is not None else None
        if named is None:
            continue
        module, package = named
        if package:
            packages.add(module)
        elif module in packages:
            continue  # Python prefers the folder
        if path.endswith(".py"):
            modules[module] = (path, said)
        else:
            compiled.add(module)
    everything = modules.keys() | compiled
    roots = tuple(_roots(root, modules, everything, packages))
    return Layout(
        files={module: file for module, file in modules.items() if module not in compiled},
        packages=frozenset(packages),
        roots=roots,
        starts=_starts(info.name, roots, packages),
    )


def _starts(name: str, roots: tuple[str, ...], packages: set[str]) -> tuple[str, ...]:
    """The roots that bear the distribution's name; else the public packages, else the public modules at the top.

    What lies beside them (``blackd`` beside ``black``, plugins for another's namespace) is often for an extra only.
    """
    public = [root for root in roots if not root.rpartition(".")[2].startswith("_")]
    plain = _plain(name)
    named = [root for root in public if _plain(root) == plain or ("." not in root and _plain(root) in plain)]
    return tuple(named or [root for root in public if root in packages] or [root for root in public if "." not in root])


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").replace(".", "").lower()


def _folders_first(file: tuple[str, str]) -> bool:
    return "/__init__." not in file[0]


def _module(path: str) -> tuple[str, bool] | None:
    """The module that a path below site-packages is, and whether it is a package; None where it is none."""
    folder, _, file = path.rpartition("/")
    name, _, rest = file.partition(".")
    if rest != "py" and not (rest == "so" or rest.endswith(".so")):
        return None
    parts = [*folder.split("/"), name] if folder else [name]
    if not all(part.isidentifier() and part not in _ASIDE for part in parts) or parts[0] in _ASIDE_AT_TOP:
        return None
    package = name == "__init__" and bool(folder)
    return ".".join(parts[:-1] if package else parts), package


def _roots(
    root: str, modules: Mapping[str, tuple[str, str]], everything: set[str], packages: set[str]
) -> Iterator[str]:
    below: dict[str, set[str]] = {}
    for module in everything:
        parts = module.split(".")
        for end in range(len(parts)):
            below.setdefault(".".join(parts[:end]), set()).add(".".join(parts[: end + 1]))
    pending = sorted(below.get("", ()), reverse=True)
    while pending:
        module = pending.pop()
        open_ = module in packages and module in modules and _opens_namespace(f"{root}/{modules[module][0]}")
        if module in everything and not open_:
            yield module
        elif module.count(".") < _DEEPEST:
            pending += sorted(below.get(module, ()), reverse=True)


def _opens_namespace(path: str) -> bool:
    """Whether an ``__init__`` does no more than to let others add to its package, as before PEP 420."""
    try:
        if os.path.getsize(path) > _SMALL:  # noqa: PTH202 - text in, number out
            return False
        with open(path, "rb") as stream:  # noqa: PTH123 - text in, bytes out
            return _NAMESPACE.search(stream.read(_SMALL)) is not None
    except OSError:
        return False
