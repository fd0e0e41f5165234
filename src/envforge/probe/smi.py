"""The cards as `nvidia-smi` tells them, for where NVML cannot be asked: a command and a pure parser.

Of a card in MIG mode it does not tell the parts in this form.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.model.machine import Card
from envforge.system import environ, process

_FIELDS = ("index", "uuid", "pci.bus_id", "name", "compute_cap", "memory.total", "mig.mode.current", "driver_version")
_MIB = 1 << 20
_WSL = "/usr/lib/wsl/lib"
_CAPABILITY = re.compile(r"[1-9]\d?\.\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``status``: ``found``, ``absent``, or ``failed: why``."""

    status: str
    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: str | None = None


def program() -> Path | None:
    """Where `nvidia-smi` lies; None where there is none."""
    found = shutil.which("nvidia-smi", path=environ.variables().get("PATH")) or shutil.which("nvidia-smi", path=_WSL)
    return Path(found).absolute() if found else None


def ask(program: Path, env: Mapping[str, str], limit: float) -> Said:
    """Ask ``program`` for the cards and, once they are known, for its CUDA; each for at most ``limit`` seconds.

    Raises OSError where it cannot be started.
    """
    query = [str(program), f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    said = parse(process.run(query, env=env, timeout=limit))
    if said.status != "found":
        return said
    return replace(said, cuda=cuda(process.run([str(program)], env=env, timeout=limit).stdout))


def parse(answer: process.Completed) -> Said:
    """What the table says; ``index`` counts the cards in the order of their PCI bus."""
    if "No devices were found" in answer.stdout:
        return Said(status="absent")
    if not answer.ok:
        why = answer.tail(1) or "it says nothing"
        return Said(status=f"failed: nvidia-smi, {answer.ending()}: {why}")
    rows = [[cell.strip() for cell in row] for row in csv.reader(answer.stdout.splitlines()) if row]
    if not rows:
        return Said(status="absent")
    try:
        cards = [_card(dict(zip(_FIELDS, row, strict=True))) for row in rows]
    except ValueError as error:
        return Said(status=f"failed: the table of nvidia-smi cannot be read ({error})")
    ordered = sorted(cards, key=lambda card: card.pci_bus or "")
    return Said(
        status="found",
        cards=tuple(replace(card, index=index) for index, card in enumerate(ordered)),
        driver=rows[0][-1],
    )


def _card(row: Mapping[str, str]) -> Card:
    """Raises ValueError where a cell that matters is none: an old `nvidia-smi` knows no `compute_cap`."""
    if not _CAPABILITY.fullmatch(row["compute_cap"]) or not row["uuid"].startswith("GPU-"):
        message = ", ".join(row.values())
        raise ValueError(message)
    memory = row["memory.total"]
    return Card(
        index=0,
        uuid=row["uuid"],
        name=row["name"],
        compute_capability=row["compute_cap"],
        memory=int(memory) * _MIB if memory.isdecimal() else 0,
        pci_bus=row["pci.bus_id"],
        mig=row["mig.mode.current"] == "Enabled",
    )


def cuda(text: str) -> str | None:
    """The newest CUDA that the driver supports, from the frame of the plain output; None where it is not told."""
    found = re.search(r"CUDA Version:\s*(\d+\.\d+)", text)
    return found[1] if found else None
