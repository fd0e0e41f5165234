"""The files that are imported, as text, whatever encoding they have."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.model.errors import Mistake, UsageError
from envforge.profiles import mistakes, reading

MAX_BYTES = 8 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands in a source: the file as it is shown, and the line from 1; None = the file as a whole."""

    file: str
    line: int | None = None

    def at(self, line: int | None) -> Place:
        return replace(self, line=line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """``content`` has plain line feeds. ``encoding`` is set where it had to be guessed."""

    path: Path
    content: str
    encoding: str | None = None

    @property
    def place(self) -> Place:
        return Place(file=str(self.path))


def read(path: Path) -> Text:
    """The text of the file at ``path``. Raises UsageError ``unreadable-file``."""
    data = reading.read(path, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise reading.unreadable(path, f"larger than {MAX_BYTES >> 20} MiB")
    content, encoding = _decoded(path, data)
    if "\0" in content:
        raise reading.unreadable(path, "it is no text")
    return Text(path=path, content=content.replace("\r\n", "\n").replace("\r", "\n"), encoding=encoding)


def _decoded(path: Path, data: bytes) -> tuple[str, str | None]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding), None
            except UnicodeDecodeError as error:
                raise reading.unreadable(path, f"it is no {encoding.removesuffix('-sig').upper()}") from error
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return data.decode("latin-1"), "Latin-1"


def broken(place: Place, message: str, *, column: int = 1) -> UsageError:
    """The error for a source that its own tool would refuse, with the place in it."""
    mistake = Mistake(path=place.file, line=place.line or 1, column=column, message=message)
    return mistakes.invalid("invalid-import", f"`{place.file}`", [mistake])
