"""What a compiled file is and needs, and what of it a loader would not find."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCode:
    """Code for one GPU architecture in a shared object. ``kind``: ``elf`` (machine code) or ``ptx``.

    ``arch`` as NVIDIA counts (86 is compute capability 8.6, 120 is 12.0); ``variant``: ``""``, ``a`` (this architecture
    alone) or ``f`` (its family).
    """

    kind: str
    arch: int
    variant: str = ""

    @property
    def name(self) -> str:
        """``sm_90a``, ``ptx_80``."""
        return f"{'sm' if self.kind == 'elf' else 'ptx'}_{self.arch}{self.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """Dynamic symbols of one version (None: none). ``library``: the one that they are bound to, if they are wanted.

    ``names`` is one piece of text, a line for each: a large library has 70,000.
    """

    names: str
    version: str | None = None
    library: str | None = None

    def each(self) -> list[str]:
        return self.names.split("\n") if self.names else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """One compiled file. ``trouble`` says why it could not be read (further); all else is then what was seen before.

    ``kind``: ``library``, ``program`` or ``object`` (not linked yet, nothing loads it). ``machine`` as the system calls
    it (``x86_64``). ``rpath`` and ``runpath``: folders as they stand there, with ``$ORIGIN``. ``wants``: strong
    undefined symbols; ``offers``: defined ones. ``needs``: library -> versions that it must define; ``defines``:
    versions that this one does. ``code``: sorted, each once.
    """

    trouble: str | None = None
    kind: str = "library"
    machine: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    wants: tuple[Symbols, ...] = ()
    offers: tuple[Symbols, ...] = ()
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    defines: tuple[str, ...] = ()
    code: tuple[GpuCode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One compiled file of an environment, as far as it is told. ``path``: relative to the prefix, or in the wheel."""

    path: str
    owner: str | None
    kind: str = "library"
    machine: str | None = None
    trouble: str | None = None
    code: tuple[GpuCode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfound:
    """A file that no loader could load here: ``libraries`` that it needs are nowhere in its reach.

    ``driver``: all of them come with the GPU's driver. ``sought``: one of them was bundled with it, or lies in another
    version where it looks for it.
    """

    path: str
    owner: str | None
    libraries: tuple[str, ...]
    driver: bool = False
    sought: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Strong undefined symbols of one file that nothing in its reach defines.

    ``library``: the one that should have them, as far as that can be told; ``provider``: where it was found, relative
    to the prefix or absolute; ``provides``: its owner. ``loaded``: Python imports the file, or another needs it.
    """

    path: str
    owner: str | None
    symbols: tuple[str, ...]
    version: str | None = None
    library: str | None = None
    provider: str | None = None
    provides: str | None = None
    loaded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a guard wants to know: which files are ``library``, and which of these do not define ``symbol``."""

    symbol: str
    library: str
    found: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """The compiled files of one environment. ``objects`` is sorted by path."""

    objects: tuple[Compiled, ...] = ()
    unfound: tuple[Unfound, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    asked: tuple[Asked, ...] = ()
