"""Small ELF files: what a loader and a reader look at, no code. Made by hand, since no test may need a compiler."""

from __future__ import annotations

import platform
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MACHINES = {"x86_64": 62, "aarch64": 183, "i386": 3}
_BASE = 64 + 2 * 56  # the header and two segments
_SHT = {".dynsym": 11, ".dynstr": 3, ".dynamic": 6, ".gnu.version": 0x6FFFFFFF, ".gnu.version_r": 0x6FFFFFFE,
        ".gnu.version_d": 0x6FFFFFFD, ".nv_fatbin": 1, ".shstrtab": 3}  # fmt: skip
_CODE = re.compile(r"(sm|ptx)_(\d+)([af]?)(!?)")
_ENTRY = struct.Struct("<HHIQIIHHIQQQQ")
_KERNEL = {"sm": b"\x7fELF" + bytes(60) + b".text.kernel\0", "ptx": b".version 8.0\n.visible .entry kernel()\n{\n}\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """A shared object of this machine's architecture, unless ``machine`` says another.

    ``wants``: undefined symbols, ``name`` or ``name@VERSION@library``, ``weak`` those that may be absent; ``offers``:
    defined ones, ``name`` or ``name@VERSION``. ``code``: ``sm_70``, ``sm_90a``, ``ptx_80``; ``sm_52!`` is a stub
    without a kernel. ``program``: a position-independent executable.
    """

    soname: str | None = None
    needs: Sequence[str] = ()
    rpath: str | None = None
    runpath: str | None = None
    wants: Sequence[str] = ()
    weak: Sequence[str] = ()
    offers: Sequence[str] = ()
    code: Sequence[str] = ()
    machine: str = field(default_factory=platform.machine)
    program: bool = False

    def bytes(self) -> bytes:
        """The file."""
        return _Writer(self).whole()


class _Writer:
    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.strings = bytearray(b"\0")
        self.places: dict[str, int] = {}

    def text(self, value: str) -> int:
        if value not in self.places:
            self.places[value] = len(self.strings)
            self.strings += value.encode() + b"\0"
        return self.places[value]

    def whole(self) -> bytes:
        needs, definitions = self._versions()
        symbols, indexes = self._symbols(needs, definitions)
        sections = {
            ".dynsym": symbols,
            ".gnu.version": indexes,
            ".gnu.version_r": self._needs(needs),
            ".gnu.version_d": self._definitions(definitions),
            ".dynamic": self._dynamic(),
            ".nv_fatbin": self._fatbin(),
        }
        sections = {name: data for name, data in sections.items() if data}
        sections[".dynstr"] = bytes(self.strings)
        names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
        sections[".shstrtab"] = names
        body, headers, at = b"", [bytes(64)], _BASE
        where: dict[str, tuple[int, int]] = {}
        for name, data in sections.items():
            pad = -at % 8
            body += bytes(pad) + data
            at += pad
            where[name] = (at, len(data))
            index = names.index(b"\0" + name.encode() + b"\0") + 1
            headers.append(struct.pack("<IIQQQQIIQQ", index, _SHT[name], 0, at, at, len(data), 0, 0, 8, 0))
            at += len(data)
        start = at + (-at % 8)
        table = bytes(start - at) + b"".join(headers)
        dynamic = where[".dynamic"]
        segments = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, at, at, 4096)
        segments += struct.pack("<IIQQQQQQ", 2, 6, *(dynamic[:1] * 3), dynamic[1], dynamic[1], 8)
        head = b"\x7fELF\x02\x01\x01" + bytes(9)
        head += struct.pack(
            "<HHIQQQIHHHHHH", 3, _MACHINES[self.elf.machine], 1, 0, 64, start, 0, 64, 56, 2, 64, len(headers),
            len(headers) - 1,
        )  # fmt: skip
        return head + segments + body + table

    def _versions(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        """Library and version -> index of what is needed; version -> index of what is defined."""
        bound = [text.split("@") for text in (*self.elf.wants, *self.elf.weak) if "@" in text]
        own = [text.split("@")[1] for text in self.elf.offers if "@" in text]
        count = 2
        needs: dict[tuple[str, str], int] = {}
        for _, version, library in bound:
            count += (library, version) not in needs
            needs.setdefault((library, version), count)
        definitions: dict[str, int] = {}
        for version in own:
            count += version not in definitions
            definitions.setdefault(version, count)
        return needs, definitions

    def _symbols(self, needs: Mapping[tuple[str, str], int], definitions: Mapping[str, int]) -> tuple[bytes, bytes]:
        rows, indexes = bytes(24), struct.pack("<H", 0)
        for binding, section, texts in ((1, 0, self.elf.wants), (2, 0, self.elf.weak), (1, 1, self.elf.offers)):
            for text in texts:
                name, *bound = text.split("@")
                rows += struct.pack("<IBBHQQ", self.text(name), binding << 4 | 2, 0, section, 0, 0)
                index = 1
                if bound:
                    index = definitions[bound[0]] if section else needs[bound[1], bound[0]]
                indexes += struct.pack("<H", index)
        return rows, indexes

    def _needs(self, needs: Mapping[tuple[str, str], int]) -> bytes:
        libraries = list(dict.fromkeys(library for library, _ in needs))
        data = b""
        for library in libraries:
            entries = [(version, index) for (of, version), index in needs.items() if of == library]
            size = 16 + 16 * len(entries)
            following = 0 if library == libraries[-1] else size
            data += struct.pack("<HHIII", 1, len(entries), self.text(library), 16, following)
            for position, (version, index) in enumerate(entries, 1):
                step = 0 if position == len(entries) else 16
                data += struct.pack("<IHHII", 0, 0, index, self.text(version), step)
        return data

    def _definitions(self, definitions: Mapping[str, int]) -> bytes:
        if not definitions:
            return b""
        entries = [(self.elf.soname or "self", 1, 1), *((version, index, 0) for version, index in definitions.items())]
        data = b""
        for position, (name, index, flags) in enumerate(entries, 1):
            following = 0 if position == len(entries) else 28
            data += struct.pack("<HHHHIII", 1, flags, index, 1, 0, 20, following)
            data += struct.pack("<II", self.text(name), 0)
        return data

    def _dynamic(self) -> bytes:
        tags = [(1, name) for name in self.elf.needs]
        tags += [
            (tag, text) for tag, text in ((14, self.elf.soname), (15, self.elf.rpath), (29, self.elf.runpath)) if text
        ]
        rows = b"".join(struct.pack("<qQ", tag, self.text(text)) for tag, text in tags)
        if self.elf.program:
            rows += struct.pack("<qQ", 0x6FFFFFFB, 0x08000000)
        return rows + bytes(16)

    def _fatbin(self) -> bytes:
        entries = b""
        for text in self.elf.code:
            match = _CODE.fullmatch(text)
            assert match is not None, text
            kind, arch, variant, stub = match.groups()
            payload = bytes(64) if stub else _KERNEL[kind]
            payload += bytes(-len(payload) % 8)
            flags = {"": 0, "a": 1, "f": 2}[variant] << 20
            number = 2 if kind == "sm" else 1
            entries += _ENTRY.pack(number, 0x0101, 64, len(payload), 0, 0, 0, 0, int(arch), 0, flags, 0, 0) + payload
        return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries if entries else b""
