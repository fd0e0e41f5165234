"""A bundle is written: the same bytes for the same contents, each read once."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from envforge.model.bundle import Manifest, Member, Stored
from envforge.model.errors import EnvforgeError

from . import manifest as manifests
from .parts import CHUNK, Sink
from .start import MANIFEST
from .starter import BLOCK, head

_DAY_ONE = (1980, 1, 1, 0, 0, 0)  # what a zip cannot go behind


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file that lies at ``path``."""

    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def open(self) -> BinaryIO:
        return self.path.open("rb")


@dataclass(frozen=True, slots=True)
class InMemory:
    """A file that is made of ``data``."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)

    def member(self, name: str) -> Member:
        return Member(name=name, sha256=hashlib.sha256(self.data).hexdigest(), size=self.size)


def pack(files: Iterable[tuple[str, Stored]]) -> InMemory:
    """A zip of name -> file, in that order."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, stored in files:
            info = zipfile.ZipInfo(name, _DAY_ONE)
            info.external_attr = 0o644 << 16
            with stored.open() as file:
                # The least that zlib can do: more takes thrice the time for a tenth of the size.
                archive.writestr(info, file.read(), zipfile.ZIP_DEFLATED, 1)
    return InMemory(output.getvalue())


def write(sink: Sink, manifest: Manifest, contents: Sequence[Stored], told: Callable[[int], None]) -> None:
    """Write the bundle of ``manifest``; ``contents``: its members' files, in order. ``told``: of the bytes so far.

    Raises EnvforgeError ``hash-mismatch`` where a file is not what the manifest says, OSError.
    """
    text = InMemory(manifests.dump(manifest))
    first = text.member(MANIFEST)
    sink.write(head(manifest.program, first.sha256))
    for member, stored in zip((first, *manifest.members), (text, *contents), strict=True):
        _add(sink, member, stored, told)
    sink.write(bytes(2 * BLOCK))


def _add(sink: Sink, member: Member, stored: Stored, told: Callable[[int], None]) -> None:
    info = tarfile.TarInfo(member.name)
    info.size = member.size
    sink.write(info.tobuf(tarfile.PAX_FORMAT))
    digest = hashlib.sha256()
    left = member.size
    with stored.open() as file:
        while left and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            sink.write(chunk)
            left -= len(chunk)
            told(sink.size)
    if left or digest.hexdigest() != member.sha256:
        raise EnvforgeError(
            "hash-mismatch",
            f"`{member.name.rpartition('/')[2]}` does not have the sha256 that the lock states any more",
            cause=f"it lies at `{stored.path}`" if isinstance(stored, OnDisk) else None,
            hint="remove that file and run the same command again: it is then fetched anew",
        )
    sink.write(bytes(-member.size % BLOCK))
