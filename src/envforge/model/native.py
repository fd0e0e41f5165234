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
