"""Modules inside packages that Python imports in place of those that somebody vouches for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_SITE = "/site-packages/"
_INIT = "/__init__"
# As Python looks for them: a package first, then an extension module, a source, bytecode without one.
_PACKAGE, _RANKS = 0, {".so": 1, ".py": 2, ".pyc": 3}


def shadows(vouched: Iterable[str], others: Iterable[str], *, namespaces: bool) -> tuple[str, ...]:
    """Those of ``others``, sorted, that Python would take for a module of ``vouched``; both relative to the prefix.

    ``namespaces``: also an ``__init__`` where a folder of modules has none, since each of their imports runs it. What
    lies at the top of a site-packages is left to `surroundings.look`.
    """
    best: dict[str, int] = {}
    folders: set[str] = set()
    others = [path for path in others if any(_modules(path))]
    for path in vouched if others else ():
        for module, rank in _modules(path):
            best[module] = min(rank, best.get(module, rank))
            folders.update(_above(module))
    found = set()
    for path in others:
        for module, rank in _modules(path):
            theirs = best.get(module)
            bare = namespaces and rank == _PACKAGE and theirs is None and module in folders
            if bare or (theirs is not None and rank < theirs):
                found.add(path)
    return tuple(sorted(found))


def _modules(path: str) -> Iterator[tuple[str, int]]:
    """What a file can be imported as (a path without suffix), with how early Python finds it; the top is left out."""
    _, site, inside = path.partition(_SITE)
    folder, _, name = inside.rpartition("/")
    suffix = f".{name.rpartition('.')[2]}"
    if not site or not folder or suffix not in _RANKS or folder.endswith("__pycache__"):
        return
    module = f"{path[: -len(name)]}{name.partition('.')[0]}"
    yield module, _RANKS[suffix]
    if module.endswith(_INIT):
        yield module.removesuffix(_INIT), _PACKAGE


def _above(module: str) -> Iterator[str]:
    """The folders of a module, up to the site-packages."""
    start = module.index(_SITE) + len(_SITE)
    end = module.rfind("/", start)
    while end > 0:
        yield module[:end]
        end = module.rfind("/", start, end)
