"""The NVIDIA cards of this host, asked of NVML in a child process. No card is no error."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.model.machine import Card
from envforge.system import environ, process

_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """``status``: ``found``, ``absent``, or ``failed: why`` (then ``cards`` are those that answered)."""

    status: str
    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: str | None = None


def look() -> Gpus:
    """Ask NVML, for at most 10 s."""
    # Where the driver's library lies outside the linker's own paths (WSL, NixOS), only this variable leads to it.
    library_path = environ.variables().get("LD_LIBRARY_PATH")
    env = environ.hermetic({"LD_LIBRARY_PATH": library_path} if library_path else None)
    program = Path(__file__).with_name("nvml.py")
    try:
        return parse(process.run([sys.executable, "-I", str(program)], env=env, timeout=_LIMIT))
    except OSError as error:
        return Gpus(status=f"failed: {error.strerror or error}")


def parse(answer: process.Completed) -> Gpus:
    """What the child said; cards come in the order of their PCI bus, and ``index`` counts in that order."""
    if not answer.ok:
        return Gpus(status=f"failed: NVML {answer.ending()}")
    try:
        data = json.loads(answer.stdout.strip().rpartition("\n")[2])
        status = str(data["status"])
        if status == "failed":
            status = f"failed: {data['why']}"
        raw = sorted(data.get("cards", []), key=lambda card: str(card["pci_bus"]))
        cards = tuple(_card(index, card) for index, card in enumerate(raw))
        cuda = data.get("cuda")
        version = f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None
        return Gpus(status=status, cards=cards, driver=data.get("driver"), cuda=version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Gpus(status=f"failed: the answer of NVML cannot be read ({error})")


def _card(index: int, raw: dict[str, Any]) -> Card:
    major, minor = raw["compute_capability"]
    return Card(
        index=index,
        uuid=str(raw["uuid"]),
        name=str(raw["name"]),
        compute_capability=f"{major}.{minor}",
        memory=int(raw["memory"]),
        pci_bus=str(raw["pci_bus"]),
        mig=bool(raw["mig"]),
    )
