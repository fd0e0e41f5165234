"""Wheels that envforge built itself, once per source and target, kept by hash so that two restores are equal."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4
from zipfile import BadZipFile

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from envforge.model.errors import EnvforgeError
from envforge.model.state import Origin

from .pages import write_atomically
from .remote import metadata_in


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWheel:
    """``name`` canonical; ``sha256`` and ``size`` (bytes) of the wheel; ``origin``: what it was built from."""

    name: str
    version: str
    file: str
    sha256: str
    size: int
    origin: Origin


class BuiltStore:
    """``folder/wheels/SHA256/FILE`` with ``about.json`` beside it; ``folder/sources/TARGET/KEY`` names the wheel.

    ``target`` tells interpreters and hosts apart (``cp310-linux_x86_64``): what one compiled fits no other.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder
        self._target = target
        self._offered: dict[str, BuiltWheel] = {}
        self._known: dict[str, BuiltWheel | None] = {}
        # Asked once for every sdist of every page, some 20,000 times: the folder is listed instead.
        self._sources = frozenset(_names(folder / "sources" / target))

    def keep(self, wheel: Path, origin: Origin, source: str | None) -> BuiltWheel:
        """Take ``wheel`` (copied) into the store; ``source`` is the key by which `of_source` finds it again."""
        sha256 = _digest(wheel)
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
            with wheel.open("rb") as file:
                metadata_in(file)
        except (InvalidWheelFilename, InvalidVersion, BadZipFile, KeyError, zlib.error, EOFError) as error:
            raise EnvforgeError("bad-wheel", f"`{wheel.name}` is no wheel", cause=str(error)) from error
        own = BuiltWheel(
            name=canonicalize_name(name),
            version=str(version),
            file=wheel.name,
            sha256=sha256,
            size=wheel.stat().st_size,
            origin=origin,
        )
        target = self._folder / "wheels" / sha256 / wheel.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{uuid4().hex}.part")
            shutil.copyfile(wheel, partial)
            partial.replace(target)
        write_atomically(target.parent / "about.json", json.dumps(asdict(own)).encode())
        if source is not None:
            write_atomically(self._source(source), sha256.encode())
            self._known[source] = own
        return own

    def of_source(self, source: str) -> BuiltWheel | None:
        """The wheel built from ``source`` (an sdist's sha256, ``git:COMMIT:...``) for this target, if there is one."""
        if source not in self._known:
            place = self._source(source)
            self._known[source] = self.by_hash(_text(place)) if place.name in self._sources else None
        return self._known[source]

    def by_hash(self, sha256: str) -> BuiltWheel | None:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            return None
        try:
            about = json.loads((self._folder / "wheels" / sha256 / "about.json").read_bytes())
            own = BuiltWheel(**{**about, "origin": Origin(**about["origin"])})
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        whole = own.sha256 == sha256 and Path(str(own.file)).name == own.file and self.path(sha256, own.file).exists()
        return own if whole else None

    def path(self, sha256: str, file: str | None = None) -> Path:
        """Where the wheel lies. Raises EnvforgeError if it is gone."""
        if file is None:
            own = self.by_hash(sha256)
            if own is None:
                raise EnvforgeError(
                    "built-wheel-missing",
                    f"the wheel {sha256[:12]} is no longer in envforge's own store",
                    hint="run `envforge create` on the profile again: it is then built anew",
                )
            file = own.file
        return self._folder / "wheels" / sha256 / file

    def metadata(self, sha256: str) -> bytes:
        with self.path(sha256).open("rb") as file:
            return metadata_in(file)

    def offer(self, own: BuiltWheel) -> None:
        """From now on ``own`` is the one candidate for its name: a step asked for this Git commit or path."""
        self._offered[own.name] = own

    def offered(self, name: str) -> BuiltWheel | None:
        return self._offered.get(name)

    @property
    def offers(self) -> bool:
        return bool(self._offered)

    def _source(self, source: str) -> Path:
        return self._folder / "sources" / self._target / hashlib.sha256(source.encode()).hexdigest()


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
