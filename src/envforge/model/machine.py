"""Facts about a host, which can be saved to a file and used elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One part of a card in MIG mode. ``profile`` as ``3g.20gb``, None where it is not told; ``memory``: bytes."""

    uuid: str
    profile: str | None = None
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU. ``compute_capability`` as ``8.6``; ``memory``: bytes; ``index``: in PCI bus order.

    ``mig``: it is divided, and only its ``slices`` can be used.
    """

    index: int
    uuid: str
    name: str
    compute_capability: str
    memory: int
    pci_bus: str | None = None
    mig: bool = False
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who was asked for cards (``NVML``, ``nvidia-smi``), and how: ``found``, ``absent``, or ``failed: why``."""

    who: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A CUDA toolkit on disk. ``version`` as its own files have it (``12.4.1``), None where none does; ``how``: found
    by CUDA_HOME, CUDA_PATH, or where toolkits usually lie (``usual``).
    """

    path: str
    version: str | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One variable that names a proxy. ``url`` has no credentials."""

    variable: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python. ``version`` is full (3.10.13); ``how``: found by PATH, pyenv, conda, uv, ENVFORGE_PYTHON, envforge."""

    path: str
    version: str
    how: str


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
    driver supports, ``12.8``) are None without a driver. ``asked``: who was asked for cards, in that order.
    ``disk_free``: bytes free at ENVFORGE_HOME.
    """

    system: str
    architecture: str
    glibc: str | None
    hostname: str
    gpus_status: str
    gpus: tuple[Card, ...] = ()
    asked: tuple[Asked, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    toolkits: tuple[Toolkit, ...] = ()
    disk_free: int = 0
    pythons: tuple[Interpreter, ...] = ()
    ambient: tuple[Ambient, ...] = ()
    proxies: tuple[Proxy, ...] = ()
    user_site: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpreterFacts:
    """What one Python is. ``markers``: its PEP 508 environment; ``tags``: the wheel tags it takes, best first.

    ``path`` is None where this host has no such Python and its facts are assumed. ``version`` is full; ``abi`` as in
    wheel names (``cp310``, ``cp313t``); ``free_threaded``: built without the GIL; ``pip_wheel``: path of the pip that
    its ensurepip carries, None if it has none.
    """

    path: str | None
    version: str
    implementation: str
    abi: str
    free_threaded: bool
    architecture: str
    glibc: str | None
    markers: Mapping[str, str]
    tags: tuple[str, ...]
    pip_wheel: str | None = None

    @property
    def target(self) -> str:
        """What code compiled for it runs on (``cp310-linux_x86_64``)."""
        return f"{self.abi}-linux_{self.architecture}"

    @property
    def platform(self) -> str:
        """The host as uv names it (``x86_64-manylinux_2_36``)."""
        return f"{self.architecture}-manylinux_{(self.glibc or '2.17').replace('.', '_')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running process; ``user``: a name, or the number where it has none."""

    pid: int
    user: str
    argv: tuple[str, ...]
