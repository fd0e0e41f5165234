"""A driver that does not run the CUDA which the environment was built for, or only by minor-version compatibility."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.state import Distribution, State, package_key, shown

from .data import MINOR_COMPATIBLE
from .wording import called

# torch 2.7.1+cu126
_LOCAL = re.compile(r"cu(\d\d)(\d)(?!\d)")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d\d)?")
_WHOLE = frozenset({"cuda-toolkit", package_key("cuda-version"), package_key("cuda-cudart")})

Cuda = tuple[int, int]
"""Major and minor."""


def built_for(state: State) -> tuple[Distribution, Cuda] | None:
    """The newest CUDA that something in ``state`` was built for or brings, and what that is; None without any.

    torch says it in its local version, a runtime by its own version; torch comes first where both say the same.
    """
    found: list[tuple[Cuda, bool, Distribution]] = []
    for name, item in state.items():
        if name == "torch" and (local := _LOCAL.match(item.version.partition("+")[2])):
            found.append(((int(local[1]), int(local[2])), True, item))
        elif name in _WHOLE or _RUNTIME.fullmatch(name):
            version = cuda(item.version)
            if version is not None:
                found.append((version, False, item))
    if not found:
        return None
    version, _, item = max(found, key=lambda each: each[:2])
    return item, version


def cuda(text: str | None) -> Cuda | None:
    """The first two numbers of a version; None where there are none."""
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None


def driver_too_old(state: State, machine: Machine, severity: Severity = Severity.ERROR) -> Iterator[Finding]:
    """At most one finding: ``severity`` where the driver does not run it, info where it does by compatibility.

    Where no driver is known nothing is said.
    """
    needed = built_for(state)
    if needed is None or machine.driver is None:
        return
    item, version = needed
    oldest = MINOR_COMPATIBLE.get(version[0])
    supported = cuda(machine.cuda)
    if not _older(machine.driver, oldest) and (supported is None or supported >= version):
        return
    runs = oldest is not None and not _older(machine.driver, oldest)
    runs = runs and (supported is None or supported[0] >= version[0])
    has = f"`{machine.hostname}` has driver {machine.driver}"
    has += f", which supports CUDA up to {machine.cuda}" if supported else ""
    text = f"{called(item)} is for CUDA {version[0]}.{version[1]}"
    evidence = {"cuda": f"{version[0]}.{version[1]}", "oldest": oldest, "driver": machine.driver, "up_to": machine.cuda}
    if runs:
        yield Finding(
            id="driver-too-old",
            severity=Severity.INFO,
            subject=shown(item.name),
            message=f"{text}; {has}: it runs by minor-version compatibility",
            evidence=evidence,
            remedy="nothing, unless something says that its PTX cannot be compiled: then a newer driver",
        )
        return
    wants = f"driver {oldest} or newer" if oldest else "a newer driver"
    yield Finding(
        id="driver-too-old",
        severity=severity,
        subject=shown(item.name),
        message=f"{text}, which needs {wants}; {has}",
        evidence=evidence,
        remedy="install a newer driver, or choose builds for an older CUDA by the index",
    )


def _older(driver: str, oldest: str | None) -> bool:
    """Whether the driver is older than ``oldest``; one that cannot be read is not."""
    try:
        return oldest is not None and Version(driver) < Version(oldest)
    except InvalidVersion:
        return False
