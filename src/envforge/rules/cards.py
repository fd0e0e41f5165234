"""Which GPU code runs on which card, and which cards a profile is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from packaging.specifiers import SpecifierSet

from envforge.model.native import GpuCode
from envforge.model.profile import Profile

Card = tuple[int, int]
"""Compute capability, major and minor."""

KNOWN: Final[tuple[Card, ...]] = (
    (5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1),
)  # fmt: skip
"""Cards that there are to plug in (NVIDIA, "CUDA GPU Compute Capability", November 2026); those of boards with a CPU of
their own (5.3, 6.2, 7.2, 8.7, 11.0) are left out: no profile means them by a range.
"""


def card(compute_capability: str) -> Card:
    """``8.6`` as numbers."""
    major, _, minor = compute_capability.partition(".")
    return int(major), int(minor or 0)


def shown(value: Card) -> str:
    return f"{value[0]}.{value[1]}"


def runs(code: GpuCode, on: Card) -> bool:
    """Whether a card runs it: machine code within its major, up to its minor; PTX from any older one.

    Code of variant ``a`` runs on exactly that card, of ``f`` in its family (NVIDIA, CUDA programming guide).
    """
    of = divmod(code.arch, 10)
    if code.variant == "a":
        return of == on
    if code.kind == "ptx" and not code.variant:
        return of <= on
    return of[0] == on[0] and of[1] <= on[1]


def fits(codes: Iterable[GpuCode], on: Card) -> bool:
    return any(runs(code, on) for code in codes)


def admitted(profile: Profile) -> tuple[Card, ...]:
    """The known cards that the profile's ``gpu`` block lets in by their compute capability; none without one.

    What exactly one version means is a card even where none is known.
    """
    wanted = profile.gpu.compute_capability if profile.gpu is not None else ()
    exact = {card(text[2:].strip()) for text in wanted if text.startswith("==") and "*" not in text and "," not in text}
    return tuple(sorted(exact | {each for each in KNOWN if within(each, wanted)}))


def within(value: Card, specifiers: Iterable[str]) -> bool:
    """Whether one of ``specifiers`` lets it in."""
    return any(SpecifierSet(text).contains(shown(value)) for text in specifiers)
