"""The NVIDIA cards of this host, asked of NVML in a child process, else of `nvidia-smi`. No card is no error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envforge.model.machine import Asked, Card, Slice
from envforge.system import environ, process

from . import smi

_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """``status``: ``found``, ``absent``, or ``failed: why`` (then ``cards`` are those that answered)."""

    status: str
    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    asked: tuple[Asked, ...] = ()


def look() -> Gpus:
    """Ask NVML for at most 10 s, and `nvidia-smi` where NVML knows of no driver, cannot be asked or crashes.

    One that hangs is not asked twice: `nvidia-smi` asks the same driver.
    """
    # Where the driver's library lies outside the linker's own paths (WSL, NixOS), only this variable leads to it.
    library_path = environ.variables().get("LD_LIBRARY_PATH")
    env = environ.hermetic({"LD_LIBRARY_PATH": library_path} if library_path else None)
    program = Path(__file__).with_name("nvml.py")
    try:
        answer = process.run([sys.executable, "-I", str(program)], env=env, timeout=_LIMIT)
    except OSError as error:
        seen, hangs = Gpus(status=f"failed: {error.strerror or error}"), False
    else:
        seen, hangs = parse(answer), answer.timed_out
    seen = replace(seen, asked=(Asked(who="NVML", status=seen.status),))
    if seen.status == "found" or seen.driver is not None or hangs:
        return seen
    return _other(seen, env)


def _other(seen: Gpus, env: Mapping[str, str]) -> Gpus:
    """What `nvidia-smi` says where NVML said ``seen``; that where there is none, or it knows no better."""
    program = smi.program()
    if program is None:
        return seen
    try:
        said = smi.ask(program, env, _LIMIT)
    except OSError as error:
        said = smi.Said(status=f"failed: {error.strerror or error}")
    asked = (*seen.asked, Asked(who="nvidia-smi", status=said.status))
    if said.status.startswith("failed"):
        return replace(seen, status=seen.status if seen.status.startswith("failed") else said.status, asked=asked)
    return Gpus(status=said.status, cards=said.cards, driver=said.driver, cuda=said.cuda, asked=asked)


def parse(answer: process.Completed) -> Gpus:
    """What the child said; cards come in the order of their PCI bus, and ``index`` counts in that order."""
    if not answer.ok:
        return Gpus(status=f"failed: NVML {answer.ending()}")
    try:
        data = json.loads(answer.stdout.strip().rpartition("\n")[2])
        status = str(data["status"])
        if status == "failed":
            status = f"failed: {_plain(data['why'])}"
        raw = sorted(data.get("cards", []), key=lambda card: str(card["pci_bus"]))
        cards = tuple(_card(index, card) for index, card in enumerate(raw))
        if len({card.uuid for card in cards}) != len(cards):
            return Gpus(status="failed: NVML gives two cards the same UUID")
        cuda = data.get("cuda")
        version = f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None
        driver = _plain(data["driver"]) if data.get("driver") else None
        return Gpus(status=status, cards=cards, driver=driver, cuda=version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Gpus(status=f"failed: the answer of NVML cannot be read ({error})")


def _card(index: int, raw: dict[str, Any]) -> Card:
    major, minor = raw["compute_capability"]
    if not (0 < int(major) < 100 and 0 <= int(minor) < 10):
        message = f"compute capability {major}.{minor}"
        raise ValueError(message)
    return Card(
        index=index,
        uuid=_plain(raw["uuid"]),
        name=_plain(raw["name"]),
        compute_capability=f"{major}.{minor}",
        memory=int(raw["memory"]),
        pci_bus=_plain(raw["pci_bus"]),
        mig=bool(raw["mig"]),
        slices=tuple(
            Slice(uuid=_plain(part["uuid"]), profile=_plain(part["profile"]) or None, memory=int(part["memory"]))
            for part in raw.get("slices", ())
        ),
    )


def _plain(text: Any) -> str:
    """Without what a terminal would obey, should the library say such a thing."""
    return re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", "", str(text or ""))
