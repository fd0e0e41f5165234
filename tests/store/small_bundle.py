"""A bundle of a few bytes: a program that prints what it was told, and files that are no wheels."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from envforge.model.bundle import HOST, Manifest, Needs, Program
from envforge.store.bundles.names import LOCK, PROFILE, file_name
from envforge.store.bundles.parts import Sink
from envforge.store.bundles.start import PROGRAM
from envforge.store.bundles.writing import InMemory, pack, write

ABI = str(sysconfig.get_config_var("SOABI"))
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
TELLS = b"import os, sys\nprint([os.environ['ENVFORGE_PROGRAM'], *sys.argv[1:]])\n"
FILES = (b"a" * 30_000, b"b" * 512, b"")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def contents(files: Iterable[bytes] = FILES) -> dict[str, InMemory]:
    named = {file_name(sha256(data), f"file-{number}.whl"): InMemory(data) for number, data in enumerate(files)}
    program = pack([("bin/tool", InMemory(b"")), ("site/envforge/__main__.py", InMemory(TELLS))])
    return {PROFILE: InMemory(b"name: demo\n"), LOCK: InMemory(b"lock"), PROGRAM: program, **named}


def manifest(held: Mapping[str, InMemory], *, abi: str = ABI, needs: Needs | None = None) -> Manifest:
    return Manifest(
        environment="demo",
        python=f"{MINOR}.1",
        python_from=HOST,
        needs=needs or Needs(),
        program=Program(version="7.8.9", python=MINOR, abi=abi, needs=Needs()),
        members=tuple(each.member(name) for name, each in held.items()),
    )


def written(folder: Path, about: Manifest | None = None, held: dict[str, InMemory] | None = None) -> Path:
    """A bundle in ``folder``."""
    folder.mkdir(exist_ok=True)
    held = held or contents()
    with Sink(folder, None) as sink:
        write(sink, about or manifest(held), list(held.values()), lambda _: None)
    return sink.paths[0].rename(folder / "demo.tar")


def added(bundle: Path, *more: tuple[tarfile.TarInfo, bytes]) -> Path:
    """The bundle, with further members at its end."""
    with bundle.open("r+b") as file:
        file.seek(-1024, 2)
        for info, data in more:
            info.size = len(data)
            file.write(info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % 512))
        file.write(bytes(1024))
    return bundle


def with_program(about: Manifest, **changes: object) -> Manifest:
    return replace(about, program=replace(about.program, **changes))  # type: ignore[arg-type]
