"""The compiled files in a wheel, unpacked one after the other and never all of it."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.native import Elf

from . import compiled, elf


def read(wheel: Path, scratch: Path) -> dict[str, Elf]:
    """Path in the wheel -> what is in the compiled file there. ``scratch``: an empty folder on a disk with room.

    Raises EnvforgeError ``bad-wheel``; OSError where there is no room.
    """
    found: dict[str, Elf] = {}
    place = scratch / "object"
    try:
        with zipfile.ZipFile(wheel) as archive:
            for path in sorted(compiled.named(archive.namelist())):
                with archive.open(path) as packed:
                    start = packed.read(len(elf.MAGIC))
                    if start != elf.MAGIC:
                        continue
                    with place.open("wb") as unpacked:
                        unpacked.write(start)
                        shutil.copyfileobj(packed, unpacked, 1 << 20)
                found[path] = elf.read(str(place))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise EnvforgeError("bad-wheel", f"`{wheel}` is no wheel that can be read", cause=str(error)) from error
    return found
