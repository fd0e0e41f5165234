"""A lock that leaves its home: what an environment holds after each step of a profile, to be built again elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .export import installable
from .state import Distribution, State, is_package


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedStep:
    """``name`` of the step, and what is installed after it.

    What the Python itself brings, and what a program put there, has no ``sha256``: no lock gives it back.
    """

    name: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class LockFile:
    """``text`` is the profile's expanded YAML; ``python``: full version, or only ``3.10`` where it was assumed.

    ``base``: what is there before the first step; only the backend conda has any. ``substitutes``: index name -> the
    index that stood in for it.
    """

    name: str
    text: str
    python: str
    steps: tuple[LockedStep, ...]
    base: State = field(default_factory=dict)
    substitutes: Mapping[str, str] = field(default_factory=dict)

    @property
    def final(self) -> State:
        """What is there at the end."""
        return self.steps[-1].state if self.steps else self.base

    @property
    def files(self) -> Mapping[str, Distribution]:
        """sha256 -> the distribution or conda package that came from that file, of base and all steps."""
        states = (self.base, *(step.state for step in self.steps))
        return {
            item.sha256: item
            for state in states
            for item in state.values()
            if item.sha256 is not None and (is_package(item.name) or installable(item))
        }
