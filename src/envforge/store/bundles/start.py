"""Unpacks the envforge that a bundle carries, and lets it build the environment.

The shell script at the beginning of a bundle runs this text: ``python -I -c TEXT MANIFEST-SHA256 BUNDLE OPTIONS...``.
Nothing is installed then, so the standard library must do; and the text stands there in apostrophes, so it holds none.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import re
import shlex
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
PROGRAM = "envforge.zip"
_CUT_SHORT = "it is cut short or damaged"
COMMAND = """\
#!/bin/sh
export ENVFORGE_PROGRAM="$0"
exec {python} -I -m envforge "$@"
"""
_PART = re.compile(r"(.+)\.([0-9]{3})", re.DOTALL)


class BundleError(Exception):
    """What is told in one line."""


class Joined(io.RawIOBase):
    """The bytes of several files in one, which can be read and sought; `read_at` from any thread. Raises OSError."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__()
        self._position = 0
        self._files: list[tuple[int, int, int]] = []  # descriptor, where it begins, where it ends
        self.sizes: list[int] = []
        try:
            for path in paths:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                start, size = sum(self.sizes), os.fstat(descriptor).st_size
                self._files.append((descriptor, start, start + size))
                self.sizes.append(size)
        except OSError:
            self.close()
            raise

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def read_at(self, offset: int, count: int) -> bytes:
        """``count`` bytes from ``offset`` on, fewer only at the end."""
        found = b""
        for descriptor, start, end in self._files:
            while start <= offset < end and count:
                got = os.pread(descriptor, min(count, end - offset), offset - start)
                if not got:
                    return found
                found, offset, count = found + got, offset + len(got), count - len(got)
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = self.read_at(self._position, len(buffer))
        buffer[: len(got)] = got
        self._position += len(got)
        return len(got)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + {0: 0, 1: self._position, 2: self.size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        for descriptor, _, _ in self._files:
            os.close(descriptor)
        self._files = []
        super().close()


def parts(path: str) -> list[str]:
    """The files that a bundle consists of: ``path``, and what follows it where that is the first of several."""
    match = _PART.fullmatch(path)
    found = [path]
    if match is not None and int(match[2]) == 1:
        while Path(following := f"{match[1]}.{len(found) + 1:03}").is_file():
            found.append(following)
    return found


def main(arguments: list[str]) -> int:
    """Become the envforge of the bundle, or say why not and return 1."""
    digest, path, *options = arguments
    try:
        with Joined(parts(path)) as file:
            program = unpacked(file, digest, home(options))
    except BundleError as error:
        return fail(f"{path}: {error}")
    except (tarfile.TarError, zipfile.BadZipFile, ValueError) as error:
        return fail(f"{path}: {_CUT_SHORT} ({error})")
    except OSError as error:
        return fail(f"{error.filename or path}: {error.strerror or error}")
    return os.execv(program, [str(program), "create", "--bundle", path, *options])


def fail(text: str) -> int:
    print(f"bundle: {text}", file=sys.stderr)
    return 1


def home(options: Sequence[str]) -> Path:
    """Where envforge will keep what it builds, as far as options and variables say."""
    for position, word in enumerate(options):
        name, equals, value = word.partition("=")
        if name == "--home" and (equals or position + 1 < len(options)):
            return Path(value if equals else options[position + 1]).absolute()
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()
    return Path(os.environ.get("ENVFORGE_HOME") or data / "envforge").absolute()


def unpacked(file: Joined, digest: str, place: Path) -> Path:
    """The command of the bundle, which is unpacked below ``place`` unless it is there. Raises BundleError, OSError."""
    with tarfile.open(fileobj=io.BufferedReader(file, 1 << 20), mode="r:") as archive:
        text = content(archive, MANIFEST)
        if hashlib.sha256(text).hexdigest() != digest:
            raise BundleError(_CUT_SHORT)
        manifest = json.loads(text)
        version = manifest["program"]["version"]
        check(manifest["needs"])
        check(manifest["program"]["needs"])
        sha256 = next(each["sha256"] for each in manifest["members"] if each["name"] == PROGRAM)
        folder = place / "program" / f"envforge-{version}-{sha256[:12]}"
        place.mkdir(parents=True, exist_ok=True)
        umask = os.umask(0o077)
        folder.parent.mkdir(exist_ok=True)
        with (folder.parent / "lock").open("a", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # of two that start at once, one does the work
            if not (folder / "complete").exists() or not os.access(folder / "bin" / "python", os.X_OK):
                data = content(archive, PROGRAM)
                if hashlib.sha256(data).hexdigest() != sha256:
                    raise BundleError(f"{PROGRAM} does not have the sha256 that the manifest states")
                install(data, folder)
                print(f"bundle: envforge {version} lies in {folder}", file=sys.stderr)
        os.umask(umask)
    return folder / "bin" / "envforge"


def content(archive: tarfile.TarFile, name: str) -> bytes:
    try:
        found = archive.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise BundleError(_CUT_SHORT)
    data = found.read()
    if len(data) != archive.getmember(name).size:
        raise BundleError(_CUT_SHORT)
    return data


def check(needs: dict[str, str | None]) -> None:
    """Raises BundleError where this host cannot run what the bundle brings."""
    architecture, glibc = needs["architecture"], needs["glibc"]
    if architecture not in {None, platform.machine()}:
        raise BundleError(f"it is for {architecture}, and this host is {platform.machine()}")
    # A Python of the right ABI runs here, so the C library is glibc.
    there = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2]
    if glibc is not None and numbers(there) < numbers(glibc):
        raise BundleError(f"it needs glibc {glibc} or newer, and this host has {there}")


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def install(data: bytes, folder: Path) -> None:
    """A virtual environment of this Python with the files of the archive, which counts once ``complete`` is there."""
    import venv  # noqa: PLC0415 - only where there is nothing yet

    shutil.rmtree(folder, ignore_errors=True)
    venv.EnvBuilder(symlinks=True).create(folder)
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            top, _, rest = name.partition("/")
            target = (folder / "bin" if top == "bin" else folder / "lib" / minor / "site-packages") / rest
            if not rest or rest.startswith("/") or ".." in rest.split("/"):
                raise BundleError(f"{name} leads out of the archive")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
            if top == "bin":
                target.chmod(0o755)
    command = folder / "bin" / "envforge"
    command.write_text(COMMAND.format(python=shlex.quote(str(folder / "bin" / "python"))), encoding="utf-8")
    command.chmod(0o755)
    (folder / "complete").touch()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
