"""One compiled file, as it lies on the disk: what it needs, what it has, and for which GPUs.

pyelftools reads the header. The tables it would read entry by entry, which takes ten times as long, and stricter than a
loader: they are unpacked in bulk, and what a broken file could make endless is bounded by its size. Nothing is mapped,
since a file that another process shortens would end this one.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from envforge.model.native import Elf, GpuCode, Symbols

from . import fatbin

MAGIC: Final = b"\x7fELF"
_LARGEST = 1 << 28  # bytes of a table of symbols or names; that of the largest known library has 20 million
_MACHINES: Final = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_386": "i386", "EM_PPC64": "ppc64le"}
_KINDS: Final = {"ET_DYN": "library", "ET_EXEC": "program", "ET_REL": "object"}

# Of elf(5).
_SYMBOL = struct.Struct("<IBBHQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOADED = frozenset({1, 2})  # PT_LOAD, PT_DYNAMIC
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOBITS = 8
_TAG = struct.Struct("<qQ")
_NEED, _NEED_ONE = struct.Struct("<HHIII"), struct.Struct("<IHHII")
_DEFINITION, _DEFINITION_NAME = struct.Struct("<HHHHIII"), struct.Struct("<II")
_NULL, _NEEDED, _SONAME, _RPATH, _RUNPATH, _FLAGS_1 = 0, 1, 14, 15, 29, 0x6FFFFFFB
_PIE = 0x08000000
_VERSION_WEAK = 2
_BINDINGS, _STRONG = frozenset({1, 2, 10}), frozenset({1, 10})  # global, weak, unique
_HIDDEN = 0x8000


class _TroubleError(Exception):
    """Why it cannot be read further."""


def is_elf(path: str) -> bool:
    """Whether a regular file begins as one; False where it cannot be read."""
    try:
        with _open(path) as stream:
            return stream.read(4) == MAGIC
    except OSError:
        return False


def read(path: str) -> Elf:
    """What lies at ``path``; whatever is wrong with it stands in ``trouble``, and nothing is raised.

    No symlink is followed, a pipe is not waited for.
    """
    try:
        with _open(path) as stream:
            return _read(stream, os.fstat(stream.fileno()).st_size)
    except OSError as error:
        return Elf(trouble=error.strerror or str(error))


def _open(path: str) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is no regular file")
    return open(descriptor, "rb", buffering=1 << 12)  # noqa: PTH123 - a descriptor, not a path


def _read(stream: IO[bytes], size: int) -> Elf:
    start = stream.read(64)
    if not start.startswith(MAGIC):
        return Elf(trouble="it is no ELF file")
    if start[4:6] != b"\x02\x01":
        return Elf(trouble="it is a 32-bit file" if start[4:5] == b"\x01" else "it is a big-endian file")
    if len(start) < 64:
        return Elf(trouble="it is truncated: it has no whole header")
    known = Elf()
    try:
        file = ELFFile(stream)
        known = replace(
            known,
            kind=_KINDS.get(str(file["e_type"]), str(file["e_type"])),
            machine=_MACHINES.get(str(file["e_machine"]), str(file["e_machine"])),
        )
        return _File(stream=stream, size=size, file=file, known=known).whole()
    except _TroubleError as error:
        return replace(known, trouble=str(error))
    except (ELFError, ConstructError, struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        # Whatever a parser stumbles over in a file that is not as it should be.
        return replace(known, trouble=f"it is damaged: {str(error) or type(error).__name__}")


@dataclass(slots=True, kw_only=True)
class _File:
    stream: IO[bytes]
    size: int
    file: Any
    known: Elf
    sections: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> offset and size, of those that lie in the file."""

    def whole(self) -> Elf:
        if self.known.kind == "object":
            return self.known
        self._bounds()
        self.sections = self._table()
        known = self._dynamic()
        strings = self._data(".dynstr")
        versions, needs = self._needs(strings)
        defined = self._definitions(strings)
        wants, offers = self._symbols(strings, versions, defined)
        return replace(
            known,
            wants=wants,
            offers=offers,
            needs=tuple((library, tuple(sorted(found))) for library, found in sorted(needs.items())),
            defines=tuple(sorted(defined.values())),
            code=tuple(sorted(set(self._code()), key=lambda each: (each.kind, each.arch, each.variant))),
        )

    def _bounds(self) -> None:
        """Raise _TroubleError where the headers speak of what is not there."""
        header = self.file.header
        count = header["e_phnum"]
        if count and header["e_phentsize"] != _SEGMENT.size:
            raise _TroubleError("its table of segments is damaged")
        table = self._at(header["e_phoff"], count * _SEGMENT.size, "table of segments")
        for kind, _, offset, _, _, length, _, _ in _SEGMENT.iter_unpack(table):
            if kind in _LOADED and offset + length > self.size:
                raise _TroubleError(f"it is truncated: it has {self.size} bytes, {offset + length} are to be loaded")

    def _table(self) -> dict[str, tuple[int, int]]:
        header = self.file.header
        count, start = header["e_shnum"], header["e_shoff"]
        if not count:
            return {}
        if header["e_shentsize"] != _SECTION.size:
            raise _TroubleError("its table of sections is damaged")
        rows = list(_SECTION.iter_unpack(self._at(start, count * _SECTION.size, "table of sections")))
        _, _, _, _, offset, size, *_ = rows[header["e_shstrndx"]]
        names = self._at(offset, size, "names of sections")
        return {_text(names, name): (offset, size) for name, kind, _, _, offset, size, *_ in rows if kind != _NOBITS}

    def _data(self, name: str) -> bytes:
        """A section's bytes; none where there is no such section."""
        section = self.sections.get(name)
        return b"" if section is None else self._at(*section, name)

    def _at(self, offset: int, size: int, name: str) -> bytes:
        if offset + size > self.size:
            raise _TroubleError(f"it is truncated: its {name} is not all there")
        if size > _LARGEST:
            raise _TroubleError(f"its {name} of {size} bytes is too large")
        self.stream.seek(offset)
        return self.stream.read(size)

    def _dynamic(self) -> Elf:
        """SONAME, NEEDED, RPATH, RUNPATH."""
        strings, tags = self._data(".dynstr"), self._data(".dynamic")
        found: dict[int, list[str]] = {}
        kind = self.known.kind
        for tag, value in _TAG.iter_unpack(tags[: len(tags) // 16 * 16]):
            if tag == _NULL:
                break
            if tag in {_NEEDED, _SONAME, _RPATH, _RUNPATH}:
                found.setdefault(tag, []).append(_text(strings, value))
            elif tag == _FLAGS_1 and value & _PIE:
                kind = "program"
        folders = {tag: tuple(part for text in found.get(tag, ()) for part in text.split(":") if part) for tag in found}
        return replace(
            self.known,
            kind=kind,
            soname=next(iter(found.get(_SONAME, ())), None),
            needed=tuple(found.get(_NEEDED, ())),
            rpath=folders.get(_RPATH, ()),
            runpath=folders.get(_RUNPATH, ()),
        )

    def _needs(self, strings: bytes) -> tuple[dict[int, tuple[str, str]], dict[str, set[str]]]:
        """Index of a version -> library and version; and library -> versions without which it is not loaded."""
        data = self._data(".gnu.version_r")
        versions: dict[int, tuple[str, str]] = {}
        needs: dict[str, set[str]] = {}
        for offset, (_, count, file, first, _) in _chain(data, _NEED):
            library = _text(strings, file)
            for _, (_, flags, index, name, _) in _chain(data, _NEED_ONE, offset + first, count):
                versions[index & ~_HIDDEN] = (library, _text(strings, name))
                if not flags & _VERSION_WEAK:
                    needs.setdefault(library, set()).add(_text(strings, name))
        return versions, needs

    def _definitions(self, strings: bytes) -> dict[int, str]:
        """Index of a version -> its name, for those that this file defines."""
        data = self._data(".gnu.version_d")
        found = {}
        for offset, (_, flags, index, _, _, first, _) in _chain(data, _DEFINITION):
            if not flags & 1:  # the first is the file's own name
                name, _ = _DEFINITION_NAME.unpack_from(data, offset + first)
                found[index & ~_HIDDEN] = _text(strings, name)
        return found

    def _symbols(
        self, strings: bytes, versions: dict[int, tuple[str, str]], defined: dict[int, str]
    ) -> tuple[tuple[Symbols, ...], tuple[Symbols, ...]]:
        """What is wanted and what is offered: one pass over the table, the loop that every symbol passes."""
        table, indexes = self._data(".dynsym"), self._data(".gnu.version")
        count = len(table) // _SYMBOL.size
        has_versions = len(indexes) >= 2 * count
        numbers = struct.unpack_from(f"<{count}H", indexes) if has_versions else (1,) * count
        wants: dict[int, list[bytes]] = {}
        offers: dict[int, list[bytes]] = {}
        end = strings.find
        for (name, info, _, section, _, _), version in zip(
            _SYMBOL.iter_unpack(table[: count * _SYMBOL.size]), numbers, strict=True
        ):
            if not name:
                continue
            binding = info >> 4
            if section:
                if binding in _BINDINGS:
                    offers.setdefault(version & 0x7FFF, []).append(strings[name : end(b"\0", name)])
            elif binding in _STRONG:
                wants.setdefault(version & 0x7FFF, []).append(strings[name : end(b"\0", name)])
        nothing = (None, None)
        return (
            tuple(_wanted(names, *versions.get(index, nothing)) for index, names in sorted(wants.items())),
            tuple(Symbols(names=_lines(names), version=defined.get(index)) for index, names in sorted(offers.items())),
        )

    def _code(self) -> Iterator[GpuCode]:
        start, size = self.sections.get(".nv_fatbin", (0, 0))
        if start + size > self.size:
            raise _TroubleError("it is truncated: its .nv_fatbin is not all there")
        yield from fatbin.codes(self.stream.fileno(), start, start + size)


def _chain(data: bytes, form: struct.Struct, start: int = 0, count: int | None = None) -> Iterator[tuple[int, Any]]:
    """The entries of a chain with their offsets; the last field of each is the way to the next, never backwards."""
    at = start
    while at + form.size <= len(data) and (count is None or count > 0):
        entry = form.unpack_from(data, at)
        yield at, entry
        if not entry[-1]:
            return
        at += entry[-1]
        count = None if count is None else count - 1


def _text(strings: bytes, offset: int) -> str:
    return strings[offset : strings.find(b"\0", offset)].decode("utf-8", "surrogateescape")


def _wanted(names: list[bytes], library: str | None, version: str | None) -> Symbols:
    return Symbols(names=_lines(names), version=version, library=library)


def _lines(names: list[bytes]) -> str:
    return b"\n".join(names).decode("utf-8", "surrogateescape")
