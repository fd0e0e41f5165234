"""What NVML says, as one line of JSON: a program of its own, since a broken driver can crash who asks it.

It is started by its path in an isolated Python, so it imports nothing of envforge.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def report() -> dict[str, Any]:
    """``{status: found | absent | failed, why, driver, cuda, cards}``; memory in bytes, ``cuda`` as 12080."""
    try:
        import pynvml  # noqa: PLC0415 - where it is missing, that is the answer
    except ImportError as error:
        return {"status": "failed", "why": str(error)}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        absent = isinstance(error, pynvml.NVMLError_LibraryNotFound)
        return {"status": "absent" if absent else "failed", "why": str(error)}
    cards, failures = [], []
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        cuda = _optional(pynvml, pynvml.nvmlSystemGetCudaDriverVersion)
        for number in range(pynvml.nvmlDeviceGetCount()):
            try:
                cards.append(_card(pynvml, pynvml.nvmlDeviceGetHandleByIndex(number)))
            except pynvml.NVMLError as error:
                failures.append(f"GPU {number}: {error}")
    except pynvml.NVMLError as error:
        return {"status": "failed", "why": str(error)}
    finally:
        pynvml.nvmlShutdown()
    status = "failed" if failures else "found" if cards else "absent"
    return {"status": status, "why": "; ".join(failures), "driver": driver, "cuda": cuda, "cards": cards}


def _card(pynvml: Any, handle: Any) -> dict[str, Any]:
    memory = _optional(pynvml, lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    mig = _optional(pynvml, lambda: pynvml.nvmlDeviceGetMigMode(handle)[0])
    return {
        "uuid": _text(pynvml.nvmlDeviceGetUUID(handle)),
        "name": _text(pynvml.nvmlDeviceGetName(handle)),
        "compute_capability": list(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        "memory": memory or 0,
        "pci_bus": _text(pynvml.nvmlDeviceGetPciInfo(handle).busId),
        "mig": mig == 1,
    }


def _optional(pynvml: Any, ask: Callable[[], Any]) -> Any:
    """What not every card or driver can answer: None where it cannot."""
    try:
        return ask()
    except pynvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(report()) + "\n")
