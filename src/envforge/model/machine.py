"""Facts about a host, which can be saved to a file and used elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU. ``compute_capability`` as ``8.6``; ``memory``: bytes; ``index``: in PCI bus order."""

    index: int
    uuid: str
    name: str
    compute_capability: str
    memory: int
    pci_bus: str | None = None
    mig: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python. ``version`` is full (3.10.13); ``how``: where it was found (PATH, pyenv, conda, uv, ENVFORGE_PYTHON)."""

    path: str
    version: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpreterFacts:
    """What a build must know of a Python. ``markers``: its whole PEP 508 environment; ``tags``: wheel tags that it
    takes, best first (``cp310-cp310-manylinux_2_36_x86_64``); ``target``: short name for what is compiled for it
    (``cp310-linux_x86_64``); ``platform``: as uv names it (``x86_64-manylinux_2_36``); ``pip_wheel``: path of the pip that its ensurepip bundles.
    """

    path: str | None
    version: str
    markers: Mapping[str, str]
    tags: tuple[str, ...]
    target: str
    platform: str
    pip_wheel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambient:
    """One piece of host configuration that could leak into a build. ``tool``: pip, uv, conda, python, linker, proxy.

    ``source`` is a path or ``$VARIABLE``; ``settings``: the names it sets (values may be secrets, never kept).
    """

    tool: str
    source: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``gpus_status``: ``found``, ``absent``, or ``failed: why``. ``driver`` and ``cuda`` (the newest CUDA that the
    driver supports, ``12.8``) are None without a driver. ``disk_free``: bytes free at ENVFORGE_HOME.
    """

    system: str
    architecture: str
    glibc: str | None
    hostname: str
    gpus_status: str
    gpus: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    disk_free: int = 0
    pythons: tuple[Interpreter, ...] = ()
    ambient: tuple[Ambient, ...] = ()
    user_site: str | None = None
