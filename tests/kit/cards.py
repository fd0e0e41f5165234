"""Machines with cards that are not here: a `libnvidia-ml.so.1` made on the spot, which the real pynvml loads.

It is found through LD_LIBRARY_PATH, and answers from the text file `cards` beside it, so that cards come and go.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_name("nvml.c")
_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Card:
    """``mig``: None where it knows no MIG; ``status``: what NVML answers when asked for it (15: lost)."""

    bus: str
    uuid: str
    name: str
    compute_capability: str
    gib: float
    mig: bool | None = None
    slices: tuple[tuple[str, str, float], ...] = ()
    status: int = 0

    def lines(self) -> list[str]:
        """It and its slices, each ``(uuid, profile, GiB)``, as the library reads them."""
        mig = "-" if self.mig is None else str(int(self.mig))
        capability = self.compute_capability.replace(".", "|")
        facts = f"{self.bus}|{self.uuid}|{self.name}|{capability}|{int(self.gib * _GIB)}|{mig}|{self.status}"
        return [
            f"card {facts}",
            *(f"mig {uuid}|{self.name} MIG {profile}|{int(gib * _GIB)}" for uuid, profile, gib in self.slices),
        ]


RTX_3090 = Card(
    bus="00000000:21:00.0",
    uuid="GPU-3090aaaa-0000-0000-0000-000000000001",
    name="NVIDIA GeForce RTX 3090",
    compute_capability="8.6",
    gib=24,
)
V100_A = Card(
    bus="00000000:81:00.0",
    uuid="GPU-v100aaaa-0000-0000-0000-000000000002",
    name="Tesla V100-PCIE-16GB",
    compute_capability="7.0",
    gib=15.9,
)
V100_B = Card(
    bus="00000000:C1:00.0",
    uuid="GPU-v100bbbb-0000-0000-0000-000000000003",
    name="Tesla V100-PCIE-16GB",
    compute_capability="7.0",
    gib=15.9,
)
A100_MIG = Card(
    bus="00000000:01:00.0",
    uuid="GPU-a100aaaa-0000-0000-0000-000000000004",
    name="NVIDIA A100-SXM4-40GB",
    compute_capability="8.0",
    gib=40,
    mig=True,
    slices=(("MIG-aaaa0001", "3g.20gb", 19.5), ("MIG-aaaa0002", "1g.5gb", 4.75)),
)
# As NVML may give them: not in the order of the bus.
WORKSTATION = (V100_B, RTX_3090, V100_A)


@dataclass(frozen=True, kw_only=True)
class Driver:
    """The library in ``folder``; what it says is what was put last."""

    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """What leads to it."""
        return {"LD_LIBRARY_PATH": str(self.folder)}

    def put(self, *cards: Card, driver: str = "550.54.15", cuda: int = 12040, also: tuple[str, ...] = ()) -> None:
        """From now on these are the cards; ``also``: further lines, such as ``init 18`` or ``hang``."""
        lines = [f"driver {driver}", f"cuda {cuda}", *also, *(line for card in cards for line in card.lines())]
        draft = self.folder / "draft"
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.rename(self.folder / "cards")


def driver(folder: Path) -> Driver:
    """A driver without a card, in the new ``folder``. Skips the test where no C compiler is there."""
    folder.mkdir()
    (folder / "libnvidia-ml.so.1").write_bytes(_library())
    made = Driver(folder=folder)
    made.put()
    return made


@cache
def _library() -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is here, so there is no NVML to ask")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(made), str(_SOURCE)], check=True)
        return made.read_bytes()
