"""Which of a machine's cards a profile is for, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envforge.model.machine import Card, Machine, Slice
from envforge.model.profile import Gpu, Profile

_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFit:
    """One card; ``reasons`` say why it does not fit, empty where it does."""

    card: Card
    reasons: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The verdict about the whole machine. ``reasons`` say why it is not one for the profile.

    A profile without a ``gpu`` block fits every machine and every card.
    """

    cards: tuple[CardFit, ...]
    reasons: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.reasons


def fits(profile: Profile, machine: Machine) -> Fit:
    """Judge ``machine`` and each of its cards by the profile's ``gpu`` block."""
    gpu = profile.gpu
    if gpu is None:
        return Fit(cards=tuple(CardFit(card=card) for card in machine.gpus))
    driver = _driver(gpu, machine)
    cards = tuple(CardFit(card=card, reasons=(*_card(gpu, card), *driver)) for card in machine.gpus)
    if not cards:
        found = "no GPU was found" if machine.gpus_status in {"found", "absent"} else f"GPUs: {machine.gpus_status}"
        return Fit(cards=(), reasons=(f"{found}, the profile is for one with {_wanted(gpu)}",))
    number = sum(card.fits for card in cards)
    wanted = gpu.count or ">=1"
    if _within(str(number), wanted):
        return Fit(cards=cards)
    if number == 0:
        reasons = dict.fromkeys(reason for card in cards for reason in card.reasons)
        return Fit(cards=cards, reasons=tuple(reasons) or (f"no card fits, the profile wants {wanted}",))
    return Fit(cards=cards, reasons=(f"{number} of the cards fit, the profile wants {wanted}",))


def _card(gpu: Gpu, card: Card) -> Iterable[str]:
    capability = gpu.compute_capability
    if capability and not any(_within(card.compute_capability, wanted) for wanted in capability):
        yield f"compute capability {card.compute_capability}, the profile wants {' or '.join(capability)}"
    if card.mig and not card.slices:
        yield "it is in MIG mode, and none of its parts is known"
    # Of a card in parts a program gets one part.
    memory = f"{max((part.memory for part in card.slices), default=card.memory) / _GIB:.2f}"
    if gpu.memory_gib is not None and not _within(memory, gpu.memory_gib):
        yield f"{memory} GiB of memory, the profile wants {gpu.memory_gib} GiB"


def parts(profile: Profile, card: Card) -> tuple[Slice, ...]:
    """Those of the card's parts that have the memory which the profile wants."""
    wanted = profile.gpu.memory_gib if profile.gpu is not None else None
    return tuple(part for part in card.slices if wanted is None or _within(f"{part.memory / _GIB:.2f}", wanted))


def _driver(gpu: Gpu, machine: Machine) -> tuple[str, ...]:
    if gpu.driver is None:
        return ()
    if machine.driver is None:
        return (f"the driver is not known, the profile wants {gpu.driver}",)
    if not _within(machine.driver, gpu.driver):
        return (f"driver {machine.driver}, the profile wants {gpu.driver}",)
    return ()


def _within(version: str, specifier: str) -> bool:
    """Whether a version is in range; one that cannot be read is in none."""
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _wanted(gpu: Gpu) -> str:
    parts = [f"compute capability {' or '.join(gpu.compute_capability)}" if gpu.compute_capability else ""]
    parts += [f"driver {gpu.driver}" if gpu.driver else "", f"memory {gpu.memory_gib} GiB" if gpu.memory_gib else ""]
    return ", ".join(part for part in parts if part) or "any compute capability"
