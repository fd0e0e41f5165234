"""A distribution imports a module that nothing it requires provides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from envforge.model.finding import Finding, Severity
from envforge.model.imports import Import, Kind, Modules
from envforge.model.state import Distribution, State

from .modules import BROUGHT_BY, LAST_WITH, PYTHON_2
from .requirements import edges, parse

_RANK = {kind: rank for rank, kind in enumerate(Kind)}
_WHEN = {
    Kind.REACHED: "whenever it is imported",
    Kind.MODULE: "in a module that importing it does not reach",
    Kind.LAZY: "in a function",
    Kind.GUARDED: "behind a guard",
}
_PLAIN = re.compile(r"^(python-?|py-?)|(-?python|-?py)$|[-_.]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """What a distribution takes from elsewhere: ``module`` is that of ``owners``, who have it here; absent if none."""

    module: str
    owners: frozenset[str]
    where: Import


def import_undeclared(
    modules: Modules, state: State, requested: Iterable[str], markers: Mapping[str, str]
) -> Iterator[Finding]:
    """One finding for every distribution and every module; the subject is the one that imports, the aspect the module.

    An error is what is imported whenever the package is, and is not there: importing the package fails. A warning is
    what is imported as surely, and is there only because another distribution brings it. Told as info is what less
    surely is imported: where it is absent, unless the metadata has it in an extra; and where it is there for another's
    sake, if the module that imports it would fail without, or the other one itself requires who imports it.

    What the profile asks for by name (``requested``, requirements) is taken as provided.
    """
    asked = tuple(requested)
    named = frozenset(wanted.name for text in asked if (wanted := parse(text)) is not None)
    market = _Market(modules)
    reach = _Reach(state, asked, markers)
    for name in sorted(modules.of):
        mentioned = _Mentioned(state[name])
        for taken in market.taken(name):
            if taken.owners & named or taken.owners & reach.of(name):
                continue
            mutual = any(name in reach.of(owner) for owner in taken.owners)
            sure = taken.where.kind is Kind.REACHED and not mutual
            if sure or _worth_a_remark(taken, mentioned):
                yield _finding(state, name, taken, mentioned, sure=sure, hidden=modules.open)


class _Market:
    """Who brings what."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        brings: dict[str, set[str]] = {}
        for name, imports in modules.of.items():
            for module in imports.provides:
                brings.setdefault(module, set()).add(name)
        if "setuptools" in modules.of:
            brings.setdefault("distutils", {"setuptools"})  # by a `.pth`, as long as setuptools is there
        self._brings = {module: frozenset(owners) for module, owners in brings.items()}
        self._open = {
            ".".join(parts[:end]) for parts in (module.split(".") for module in brings) for end in range(1, len(parts))
        }

    def taken(self, name: str) -> list[_Taken]:
        """What ``name`` takes from elsewhere, each module once, by the strongest import of it; by module."""
        found: dict[str, _Taken] = {}
        for item in self._modules.of[name].imports:
            taken = self._whose(item)
            if taken is None or name in taken.owners:
                continue
            before = found.get(taken.module)
            if before is None or _RANK[item.kind] < _RANK[before.where.kind]:
                found[taken.module] = taken
        return [found[module] for module in sorted(found)]

    def _whose(self, item: Import) -> _Taken | None:
        """None where Python itself brings it, or it is a namespace and no module, or lies there as nobody's."""
        parts = item.module.split(".")
        if parts[0] in self._modules.standard or item.module in self._open:
            return None
        names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        for name in reversed(names):
            if name in self._brings:
                return _Taken(module=name, owners=self._brings[name], where=item)
        lacking = next(name for name in names if name not in self._open)
        if lacking == parts[0] and lacking in self._modules.names:
            return None
        return _Taken(module=lacking, owners=frozenset(), where=item)


class _Reach:
    """What a distribution requires, directly and through others, and itself."""

    def __init__(self, state: State, requested: Iterable[str], markers: Mapping[str, str]) -> None:
        self._required: dict[str, set[str]] = {}
        for edge in edges(state, requested, markers):
            if edge.wanted.name in state:
                self._required.setdefault(edge.owner, set()).add(edge.wanted.name)
        self._known: dict[str, frozenset[str]] = {}

    def of(self, name: str) -> frozenset[str]:
        if name not in self._known:
            reached, pending = {name}, [name]
            while pending:
                new = self._required.get(pending.pop(), set()) - reached
                reached |= new
                pending += new
            self._known[name] = frozenset(reached)
        return self._known[name]


class _Mentioned:
    """What a distribution's metadata requires under whatever condition: an extra, another platform."""

    def __init__(self, distribution: Distribution) -> None:
        wanted = [each for line in distribution.requires if (each := parse(line)) is not None]
        self.names = frozenset(each.name for each in wanted)
        self._texts = {each.name: each.text for each in wanted}
        self._plain = {_PLAIN.sub("", each.name): each.name for each in wanted}

    def requirement(self, name: str, module: str) -> str:
        """For the distribution ``name`` (canonical), with the bounds that are known of it."""
        return LAST_WITH.get(module) or self._texts.get(name, name)

    def bringer(self, module: str) -> tuple[str, bool]:
        """The canonical name of what would bring an absent module, and whether it is only assumed from that one's."""
        parts = module.split(".")
        for end in range(len(parts), 0, -1):
            known = BROUGHT_BY.get(".".join(parts[:end]))
            if known is not None:
                return known, False
        name = canonicalize_name(module).strip("-")
        alike = self._plain.get(_PLAIN.sub("", name))
        return (alike, False) if alike is not None else (name, True)


def _worth_a_remark(taken: _Taken, mentioned: _Mentioned) -> bool:
    """Whether an import that may never run, or that is always met, says anything that the metadata does not."""
    if taken.owners:
        return taken.where.kind in {Kind.REACHED, Kind.MODULE} and not taken.owners & mentioned.names
    return taken.module not in PYTHON_2 and mentioned.bringer(taken.module)[0] not in mentioned.names


def _finding(state: State, name: str, taken: _Taken, mentioned: _Mentioned, *, sure: bool, hidden: bool) -> Finding:
    """``sure``: it matters whenever the package is imported. ``hidden``: what is absent may be where nobody looked."""
    where = taken.where
    provider = min(taken.owners) if taken.owners else None
    if provider is None:
        distribution, assumed = mentioned.bringer(taken.module)
        told = "which nothing installed provides"
        severity = Severity.WARNING if hidden else Severity.ERROR
    else:
        distribution, assumed = provider, False
        told = f"which `{provider}` {state[provider].version} provides, that it does not require"
        severity = Severity.WARNING
    version, wanted = state[name].version, mentioned.requirement(distribution, taken.module)
    return Finding(
        id="import-undeclared",
        severity=severity if sure else Severity.INFO,
        subject=name,
        aspect=taken.module,
        message=f"`{name}` {version} imports `{taken.module}` {_WHEN[where.kind]} ({where.path}:{where.line}), {told}",
        evidence={
            "version": version,
            "module": taken.module,
            "import": where.kind.value,
            "path": where.path,
            "line": where.line,
            "provider": None if provider is None else {"name": provider, "version": state[provider].version},
            "distribution": distribution,
            "requirement": wanted,
            "assumed": assumed,
        },
        remedy=f"add `{wanted}` to a `backfill` step" if sure else None,
    )
