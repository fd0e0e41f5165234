"""Models beside the generations: ``models/HUB/NAME/REVISION``, which is there whole or not at all.

Beside that folder lie ``.REVISION.json``, what it holds, and ``.REVISION.part``, in which it is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from envforge.model.models import Kept, KeptFile
from envforge.model.profile import Hub, Model
from envforge.model.typed import checked

from .atomic import not_writable, sync_folder, write_text
from .layout import Home

_SCHEMA = 1
_BESIDE = re.compile(r"\.([A-Za-z0-9][A-Za-z0-9._-]*)\.(?:json|part)", re.ASCII)
_DEPTHS = ("*", "*/*")  # NAME, or OWNER/NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one model of a hub lies, or would. ``what``: ``HUB/NAME/REVISION``."""

    root: Path
    what: str

    @property
    def folder(self) -> Path:
        return self.root / self.what

    @property
    def part(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.part")

    @property
    def record(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.json")

    def kept(self) -> Kept | None:
        """What it holds; None where it is not there whole, or that cannot be read: it is then fetched again."""
        try:
            return read(self.record.read_bytes()) if self.folder.is_dir() else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def open(self, home: Home, without: Iterable[str] = ()) -> Path:
        """The folder in which it is fetched, with what is there already but the files ``without``.

        Raises EnvforgeError ``home-not-writable`` or ``planted-link``.
        """
        home.make_folder(self.folder.parent)
        try:
            self.record.unlink(missing_ok=True)
            if self.folder.is_dir() and not self.folder.is_symlink() and not self.part.exists():
                self.folder.rename(self.part)
            for path in without:
                (self.part / path).unlink(missing_ok=True)
        except OSError as error:
            raise not_writable(self.folder, error) from error
        return home.make_folder(self.part)

    def close(self, kept: Kept) -> None:
        """What was fetched is whole: put it in its place. Raises EnvforgeError ``home-not-writable``."""
        try:
            self.part.rename(self.folder)
            sync_folder(self.folder.parent)
        except OSError as error:
            raise not_writable(self.folder, error) from error
        write_text(self.record, json.dumps({"schema": _SCHEMA, **asdict(kept)}, indent=1) + "\n")


def read(text: bytes) -> Kept:
    """What a record says. Raises ValueError, KeyError, TypeError or AttributeError where it is none."""
    data: Any = json.loads(text)
    if data["schema"] != _SCHEMA:
        message = f"schema {data['schema']}"
        raise ValueError(message)
    files = {str(path): checked(KeptFile(**entry)) for path, entry in data["files"].items()}
    return checked(Kept(commit=data["commit"], fetched=data["fetched"], files=files))


def place(home: Home, model: Model) -> Place:
    return Place(root=home.models, what=f"{model.hub.value}/{model.name}/{model.revision}")


def places(home: Home) -> Iterator[Place]:
    """Every model of a hub that lies in the home, whole or not; what envforge did not put there is left out."""
    found: set[str] = set()
    for hub in Hub:
        for depth in _DEPTHS:
            for path in (home.models / hub.value).glob(f"{depth}/.*"):
                match = _BESIDE.fullmatch(path.name)
                if match is not None and not path.is_symlink():
                    found.add(f"{path.parent.relative_to(home.models).as_posix()}/{match[1]}")
    yield from (Place(root=home.models, what=what) for what in sorted(found))
