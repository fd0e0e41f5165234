"""What distributions import, and what they bring for others to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """When an import runs: the strongest first."""

    REACHED = "reached"
    """whenever the package is imported"""
    MODULE = "module"
    """whenever a module is imported that importing the package does not reach"""
    LAZY = "lazy"
    """when a function is called"""
    GUARDED = "guarded"
    """behind a condition, or where its failure is caught"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One module that a distribution takes from elsewhere, and the first place of its strongest kind.

    ``module`` has at most three parts, the last of which may be a name in a module; ``path`` is relative to its
    site-packages.
    """

    module: str
    kind: Kind
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    """What one distribution imports and brings.

    ``provides``: modules and packages, all below which is theirs; of a namespace its parts (``google.protobuf``).
    ``unread``: files (relative to site-packages) that cannot be read, or that the Python of envforge cannot parse.
    """

    imports: tuple[Import, ...] = ()
    provides: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Modules:
    """All of an environment. ``of``: canonical name -> its imports; ``names``: top-level names that lie there.

    ``standard``: what its Python brings; ``open``: packages of the base Python are visible, which nobody looked at.
    """

    of: Mapping[str, Imports]
    names: frozenset[str] = frozenset()
    standard: frozenset[str] = field(default_factory=frozenset)
    open: bool = False
