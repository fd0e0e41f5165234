"""A wheel's METADATA with as few bytes as its host allows."""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from envforge.model.errors import EnvforgeError
from envforge.system.http import Client, Unreachable, body

if TYPE_CHECKING:
    import httpx

_TAIL = 64 * 1024
_PLAIN: Mapping[str, str] = {"Accept-Encoding": "identity"}


class NoMetadataError(Exception):
    """The file cannot be had, or holds no METADATA; ``str()`` says why, ``status`` is the HTTP status if one came."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


def sidecar(client: Client, url: str, auth: tuple[str, str] | None) -> bytes | None:
    """METADATA as PEP 658 serves it beside the wheel; None where the host has none."""
    try:
        response = client.get(f"{url}.metadata", auth=auth)
    except Unreachable:
        return None
    return response.content if response.status_code == 200 and b"Metadata-Version" in response.content else None


def from_wheel(client: Client, url: str, auth: tuple[str, str] | None) -> bytes:
    """METADATA read out of the wheel at ``url``: two or three range requests, or all of it where ranges are ignored.

    Raises NoMetadataError.
    """
    try:
        response = client.stream(url, headers={**_PLAIN, "Range": f"bytes=-{_TAIL}"}, auth=auth)
        try:
            if response.status_code == 206:
                tail = b"".join(body(response))
                total = int(response.headers["content-range"].rpartition("/")[2])
                return metadata_in(_Ranges(client, url, auth, total, tail))
            if response.status_code in {200, 416, 501}:
                return _whole(client, url, auth, response)
        finally:
            response.close()
    except Unreachable as error:
        raise NoMetadataError(str(error)) from error
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, EOFError, NotImplementedError) as error:
        message = f"not a readable wheel ({error})"
        raise NoMetadataError(message) from error
    message = f"status {response.status_code}"
    raise NoMetadataError(message, response.status_code)


def _whole(client: Client, url: str, auth: tuple[str, str] | None, response: httpx.Response) -> bytes:
    """For a host without ranges: the file goes to a temporary file, its METADATA is read, the rest forgotten."""
    if response.status_code != 200:
        response.close()
        response = client.stream(url, headers=_PLAIN, auth=auth)
    with tempfile.TemporaryFile() as file:
        for chunk in body(response):
            file.write(chunk)
        return metadata_in(file)


def metadata_in(file: BinaryIO) -> bytes:
    """METADATA of the wheel in ``file``. Raises BadZipFile, KeyError."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            folder, _, rest = name.partition("/")
            if folder.endswith(".dist-info") and rest == "METADATA":
                return archive.read(name)
    message = "no METADATA in the archive"
    raise KeyError(message)


def pkg_info(sdist: Path) -> bytes:
    """The metadata that an sdist states (PKG-INFO), true as far as it is not dynamic. Raises EnvforgeError."""
    try:
        if zipfile.is_zipfile(sdist):
            with zipfile.ZipFile(sdist) as archive:
                name = next(name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
                return archive.read(name)
        with tarfile.open(sdist) as archive_file:
            member = next(
                each for each in archive_file if each.name.count("/") == 1 and each.name.endswith("/PKG-INFO")
            )
            content = archive_file.extractfile(member)
            return content.read() if content is not None else b""
    except (OSError, StopIteration, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise EnvforgeError(
            "bad-sdist", f"`{sdist.name}` is no sdist that states its metadata", cause=str(error)
        ) from error


_BOUND = frozenset({"requires-dist", "requires-python", "provides-extra", "version"})


def is_static(sdist: Path) -> bool:
    """Whether the sdist need not be built for its metadata (PEP 643): it states all that binds, none as dynamic."""
    try:
        metadata = pkg_info(sdist)
    except EnvforgeError:
        return False
    headers = BytesHeaderParser().parsebytes(metadata.partition(b"\n\n")[0] + b"\n\n")
    version = str(headers.get("Metadata-Version", "1.0")).split(".")
    dynamic = {str(field).strip().lower() for field in headers.get_all("Dynamic", ())}
    return [int(part) for part in version if part.isdigit()] >= [2, 2] and not dynamic & _BOUND


class _Ranges(io.RawIOBase, BinaryIO):
    """A remote file that fetches what is read and not yet here, at least 64 KiB at a time."""

    def __init__(self, client: Client, url: str, auth: tuple[str, str] | None, total: int, tail: bytes) -> None:
        super().__init__()
        self._client, self._url, self._auth, self._total = client, url, auth, total
        self._spans: list[tuple[int, bytes]] = [(total - len(tail), tail)]
        self._position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = {0: 0, 1: self._position, 2: self._total}[whence] + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        start = self._position
        end = self._total if size is None or size < 0 else min(start + size, self._total)
        self._position = max(start, end)
        if end <= start:
            return b""
        for base, data in self._spans:
            if base <= start and end <= base + len(data):
                return data[start - base : end - base]
        last = min(max(end, start + _TAIL), self._total)
        headers = {**_PLAIN, "Range": f"bytes={start}-{last - 1}"}
        response = self._client.get(self._url, headers=headers, auth=self._auth)
        if response.status_code != 206 or len(response.content) != last - start:
            message = f"the host answered a range request with status {response.status_code}"
            raise OSError(message)
        self._spans.append((start, response.content))
        return response.content[: end - start]
