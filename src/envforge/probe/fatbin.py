"""The GPU code that a shared object carries: its section `.nv_fatbin`, without the CUDA toolkit.

The section is a row of containers, aligned to 8 bytes: a header (magic, version, its own size, bytes of entries), then
entries: kind, header size, payload size, architecture, flags. The payload may be compressed, the header never is.
Found by comparing with cuobjdump 13.5 over every shared object of vLLM 0.10.0, 0.19.1 and 0.20.0.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final

from envforge.model.native import GpuCode

_CONTAINER, _ENTRY = struct.Struct("<I2xHQ"), struct.Struct("<H2xIQ12xI8xQ8xQ")
_MAGIC: Final = 0xBA55ED50
_KINDS: Final = {1: "ptx", 2: "elf"}
_VARIANTS: Final = {1: "a", 2: "f"}
# Code that a compiler adds for the architecture that it takes where none is asked for holds no kernel: it links, and
# nothing runs. Machine code with one is larger than this; so is PTX with one, but for toys.
_LEAST = 2000  # bytes, not compressed
_DEFAULTS: Final = frozenset({52, 75})  # nvcc 11 and 12, nvcc 13
_MARK: Final = {"elf": b".text.", "ptx": b".entry"}  # what a kernel's code begins with
_SEARCHED = 1 << 13  # bytes


def codes(descriptor: int, start: int, end: int) -> Iterator[GpuCode]:
    """What lies between two offsets of a file, in its order; raises ValueError where that is no such section."""
    at = start
    while at + _CONTAINER.size <= end:
        magic, header, length = _CONTAINER.unpack(os.pread(descriptor, _CONTAINER.size, at))
        if magic != _MAGIC:
            at += 8  # padding
            continue
        stop = min(at + header + length, end)
        yield from _entries(descriptor, at + header, stop)
        at = max(at + 8, (stop + 7) & ~7)


def _entries(descriptor: int, at: int, stop: int) -> Iterator[GpuCode]:
    while at + _ENTRY.size <= stop:
        kind, header, length, arch, flags, unpacked = _ENTRY.unpack(os.pread(descriptor, _ENTRY.size, at))
        if header < _ENTRY.size:
            message = "its .nv_fatbin is damaged"
            raise ValueError(message)
        if kind in _KINDS:
            code = GpuCode(kind=_KINDS[kind], arch=arch, variant=_VARIANTS.get((flags >> 20) & 3, ""))
            raw = not unpacked and length <= _SEARCHED
            body = os.pread(descriptor, length, at + header) if raw else b""
            if not _is_empty(code, unpacked or length, body):
                yield code
        at += header + length


def _is_empty(code: GpuCode, size: int, body: bytes) -> bool:
    """Whether no kernel is in it. ``body``: the code where it is small and not compressed."""
    if body:
        return _MARK[code.kind] not in body
    return size < _LEAST and (code.kind == "elf" or code.arch in _DEFAULTS)
