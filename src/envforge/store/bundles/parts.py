"""The files that a bundle is written to, and pieces of those that it is read from."""

from __future__ import annotations

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from .start import Joined

CHUNK = 4 << 20
MOST = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """``size`` bytes of a bundle, from ``offset`` on."""

    file: Joined
    offset: int
    size: int

    def open(self) -> BinaryIO:
        return io.BufferedReader(_Window(self), 1 << 20)


class _Window(io.RawIOBase):
    def __init__(self, piece: Piece) -> None:
        super().__init__()
        self._piece = piece
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), max(self._piece.size - self._position, 0))
        got = self._piece.file.read_at(self._piece.offset + self._position, count)
        buffer[: len(got)] = got
        self._position += len(got)
        return len(got)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + {0: 0, 1: self._position, 2: self._piece.size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position


class Sink:
    """What is written goes to ``folder/1``, and on to ``folder/2`` and so forth once ``most`` bytes are in one.

    ``paths``: the files so far, with ``most`` bytes in each but the last; ``size`` and `sha256` are of all together.
    Each file is on the disk when it is left.
    """

    def __init__(self, folder: Path, most: int | None) -> None:
        self._folder = folder
        self.most = most
        self._left = 0
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._hashing = ThreadPoolExecutor(max_workers=1)
        self.paths: list[Path] = []
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hashing.shutdown()
        self._end()

    def write(self, data: bytes) -> None:
        """Raises OSError."""
        # Hashing takes as long as writing: they are done at once.
        hashed = self._hashing.submit(self._digest.update, data)
        rest = memoryview(data)
        while rest:
            if self._file is None or (self.most is not None and not self._left):
                self._file = self._next()
            count = len(rest) if self.most is None else min(len(rest), self._left)
            self._file.write(rest[:count])
            self._left -= count
            rest = rest[count:]
        self.size += len(data)
        hashed.result()

    def sha256(self) -> str:
        return self._digest.hexdigest()

    def _next(self) -> BinaryIO:
        self._end()
        self.paths.append(self._folder / str(len(self.paths) + 1))
        self._left = self.most or 0
        return self.paths[-1].open("wb")

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with file:
                file.flush()
                os.fsync(file.fileno())
