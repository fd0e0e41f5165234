"""A bundle is opened: what it claims to hold is there, whole, and nothing else is; nothing is unpacked."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envforge.model.bundle import Manifest
from envforge.model.errors import EnvforgeError, UsageError

from . import manifest as manifests
from .names import FILES, LOCK, PROFILE
from .parts import CHUNK, Piece
from .start import MANIFEST, PROGRAM, Joined, parts
from .starter import BLOCK, manifest_of

_KINDS = {
    tarfile.SYMTYPE: "a symlink",
    tarfile.LNKTYPE: "a hard link",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An open bundle. ``pieces``: name -> file; ``files``: sha256 -> wheel or package."""

    path: Path
    manifest: Manifest
    pieces: Mapping[str, Piece]
    files: Mapping[str, Piece]

    def lock(self) -> str:
        """The text of its lock. Raises UsageError ``not-a-bundle``."""
        with self.pieces[LOCK].open() as file:
            try:
                return file.read().decode()
            except UnicodeDecodeError as error:
                raise manifests.invalid(self.path, f"its lock is no UTF-8 text ({error})") from error

    def verify(self, told: Callable[[int], None]) -> None:
        """Read all of it, once. ``told``: of the bytes so far. Raises EnvforgeError ``bundle-damaged``."""
        done = 0
        for member in self.manifest.members:
            digest = hashlib.sha256()
            piece = self.pieces[member.name]
            for offset in range(0, piece.size, CHUNK):
                digest.update(piece.file.read_at(piece.offset + offset, min(CHUNK, piece.size - offset)))
                done += min(CHUNK, piece.size - offset)
                told(done)
            if digest.hexdigest() != member.sha256:
                raise _damaged(self.path, f"`{member.name}` does not have the sha256 that the manifest states")


@contextmanager
def opened(path: Path) -> Iterator[Bundle]:
    """The bundle at ``path``, or whose first part lies there, for as long as the block lasts.

    Raises UsageError ``unreadable-file``, ``not-a-bundle``, ``newer-record``, EnvforgeError ``bundle-damaged``,
    ``bundle-part-missing``.
    """
    found = _parts(path)
    try:
        file = Joined(found)
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        try:
            bundle = _open(path, found, file)
        except OSError as error:
            raise _unreadable(path, error) from error
        yield bundle


def _parts(path: Path) -> list[str]:
    number = path.suffix[1:]
    if len(number) == 3 and number.isdecimal() and int(number) != 1 and path.is_file():
        raise UsageError(
            "unreadable-file", f"`{path}` is not the first part of a bundle", hint=f"name `{path.with_suffix('.001')}`"
        )
    if not path.is_file():
        first = path.with_name(f"{path.name}.001")
        raise UsageError(
            "unreadable-file",
            f"`{path}` cannot be read",
            cause="it is no file" if path.exists() else "no such file",
            hint=f"its first part is there: name `{first}`" if first.is_file() else None,
        )
    return parts(str(path))


def _open(path: Path, found: Sequence[str], file: Joined) -> Bundle:
    for part, size in zip(found[1:-1], file.sizes[1:-1], strict=True):
        if size != file.sizes[0]:
            raise _damaged(path, f"`{part}` is not as long as `{found[0]}`")
    there: dict[str, Piece] = {}
    digest = broken = None
    try:
        with tarfile.open(fileobj=Piece(file=file, offset=0, size=file.size).open(), mode="r:") as archive:
            digest = manifest_of(archive.pax_headers.get("comment", ""))
            for info in archive:
                there[_checked(path, info, there)] = Piece(file=file, offset=info.offset_data, size=info.size)
    except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
        broken = str(error)
    if digest is None:
        raise manifests.invalid(path, f"it is no tar: {broken}" if broken else "it does not begin as one")
    if MANIFEST in there and not _whole(there[MANIFEST]):
        raise _cut(path, found, f"`{MANIFEST}` is not whole")
    manifest = _manifest(path, there, digest)
    for member in manifest.members:
        piece = there.get(member.name)
        if piece is None or not _whole(piece):
            cause = broken or f"`{member.name}` is not in it"
            raise (_damaged(path, cause) if _long_enough(there, manifest) else _cut(path, found, cause))
        if piece.size != member.size:
            raise _damaged(path, f"`{member.name}` has not the size that the manifest states")
    return Bundle(path=path, manifest=manifest, pieces=there, files=_files(path, manifest, there))


def _checked(path: Path, info: tarfile.TarInfo, there: Mapping[str, Piece]) -> str:
    """The name of a member that a bundle may have. Raises UsageError ``not-a-bundle``."""
    if info.type not in {tarfile.REGTYPE, tarfile.AREGTYPE}:
        raise manifests.invalid(path, f"`{info.name}` in it is {_KINDS.get(info.type, 'no plain file')}")
    if info.name in there:
        raise manifests.invalid(path, f"`{info.name}` is in it twice")
    try:
        return manifests.check_name(info.name)
    except ValueError as error:
        raise manifests.invalid(path, str(error)) from error


def _manifest(path: Path, there: Mapping[str, Piece], digest: str) -> Manifest:
    piece = there.get(MANIFEST)
    if piece is None or next(iter(there)) != MANIFEST:
        raise manifests.invalid(path, f"`{MANIFEST}` is not the first in it")
    with piece.open() as file:
        content = file.read()
    if hashlib.sha256(content).hexdigest() != digest:
        raise _damaged(path, f"`{MANIFEST}` does not have the sha256 that the beginning states")
    manifest = manifests.load(content, path)
    names = [member.name for member in manifest.members]
    for name in (PROFILE, LOCK, PROGRAM):
        if name not in names:
            raise manifests.invalid(path, f"its manifest does not name `{name}`")
    if len({*names, MANIFEST}) != len(names) + 1:
        raise manifests.invalid(path, "its manifest names a file twice")
    surplus = sorted(there.keys() - {*names, MANIFEST})
    if surplus:
        raise manifests.invalid(path, f"`{surplus[0]}` is in it, and the manifest does not name it")
    return manifest


def _files(path: Path, manifest: Manifest, there: Mapping[str, Piece]) -> dict[str, Piece]:
    found: dict[str, Piece] = {}
    for member in manifest.members:
        if member.name.startswith(FILES):
            if member.name.split("/")[1] != member.sha256:
                raise manifests.invalid(path, f"`{member.name}` lies under another sha256 than its own")
            found[member.sha256] = there[member.name]
    return found


def _whole(piece: Piece) -> bool:
    return piece.offset + piece.size <= piece.file.size


def _long_enough(there: Mapping[str, Piece], manifest: Manifest) -> bool:
    """Whether all that the manifest names has room."""
    first = there[MANIFEST]
    blocks = sum(1 + -(-member.size // BLOCK) for member in manifest.members) - (-first.size // BLOCK)
    return first.file.size >= first.offset + blocks * BLOCK


def _cut(path: Path, found: Sequence[str], cause: str) -> EnvforgeError:
    """The error for a bundle, or a part of one, that ends too early."""
    if path.suffix != ".001":
        return _damaged(path, f"it is cut short: {cause}")
    missing = path.with_suffix(f".{len(found) + 1:03}")
    return EnvforgeError(
        "bundle-part-missing",
        f"`{missing}` is missing, or `{found[-1]}` is cut short",
        hint=f"lay all parts beside `{path}`",
    )


def _damaged(path: Path, cause: str) -> EnvforgeError:
    return EnvforgeError(
        "bundle-damaged",
        f"the bundle `{path}` is damaged: nothing of it was used",
        cause=cause,
        hint="copy it again, and compare its sha256 with what `envforge bundle` said",
    )


def _unreadable(path: Path, error: OSError) -> UsageError:
    cause = (error.strerror or str(error)).lower()
    return UsageError("unreadable-file", f"`{error.filename or path}` cannot be read", cause=cause)
