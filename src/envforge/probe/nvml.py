"""What NVML says, as one line of JSON: a program of its own, since a broken driver can crash who asks it.

It is started by its path in an isolated Python, so it imports nothing of envforge.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

_MOST = 64  # cards of one host, or parts of one card: more is a library that lies


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
        return {"status": "absent" if absent else "failed", "why": _why(error)}
    cards, failures = [], []
    driver = cuda = None
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        cuda = _optional(pynvml, pynvml.nvmlSystemGetCudaDriverVersion)
        number = pynvml.nvmlDeviceGetCount()
        if number > _MOST:
            failures.append(f"it says that there are {number} cards")
        for position in range(min(number, _MOST)):
            try:
                cards.append(_card(pynvml, pynvml.nvmlDeviceGetHandleByIndex(position)))
            except pynvml.NVMLError as error:
                failures.append(f"GPU {position}: {_why(error)}")
                if isinstance(error, pynvml.NVMLError_InvalidArgument):
                    break  # there is none of this number, and none after it
    except pynvml.NVMLError as error:
        failures.append(_why(error))
    finally:
        _optional(pynvml, pynvml.nvmlShutdown)
    status = "failed" if failures else "found" if cards else "absent"
    return {"status": status, "why": "; ".join(failures), "driver": driver, "cuda": cuda, "cards": cards}


def _why(error: Any) -> str:
    """NVML's own words, clearer where they are for who knows the driver from within."""
    words = {
        9: "the driver is not loaded",
        13: "the library is too old for what is asked",
        15: "the card is lost: it no longer answers on its bus",
        18: "the driver's library and its kernel module are of different versions: start the machine anew",
    }
    return words.get(error.value) or str(error)


def _card(pynvml: Any, handle: Any) -> dict[str, Any]:
    mig = (_optional(pynvml, pynvml.nvmlDeviceGetMigMode, handle) or [0])[0] == 1
    return {
        "uuid": _text(pynvml.nvmlDeviceGetUUID(handle)),
        "name": _text(pynvml.nvmlDeviceGetName(handle)),
        "compute_capability": list(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        "memory": _memory(pynvml, handle),
        "pci_bus": _text(pynvml.nvmlDeviceGetPciInfo(handle).busId),
        "mig": mig,
        "slices": list(_slices(pynvml, handle)) if mig else [],
    }


def _slices(pynvml: Any, handle: Any) -> Iterator[dict[str, Any]]:
    """The parts of a card; their numbers may have gaps."""
    number = _optional(pynvml, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for position in range(min(number, _MOST)):
        part = _optional(pynvml, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, position)
        uuid = _optional(pynvml, pynvml.nvmlDeviceGetUUID, part) if part is not None else None
        if uuid is None:
            continue
        name = _optional(pynvml, pynvml.nvmlDeviceGetName, part)
        # `NVIDIA A100-SXM4-40GB MIG 3g.20gb`
        profile = _text(name).rpartition(" MIG ")[2] if name is not None and " MIG " in _text(name) else None
        yield {"uuid": _text(uuid), "profile": profile, "memory": _memory(pynvml, part)}


def _memory(pynvml: Any, handle: Any) -> int:
    """In bytes; 0 where it is not told."""
    told = _optional(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    return int(told.total) if told is not None else 0


def _optional(pynvml: Any, ask: Callable[..., Any], *about: Any) -> Any:
    """What not every card or driver can answer: None where it cannot."""
    try:
        return ask(*about)
    except pynvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(report()) + "\n")
