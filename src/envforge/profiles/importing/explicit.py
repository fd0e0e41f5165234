"""An explicit list of conda: the address of every package, in the order in which they are installed."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envforge.model.profile import Backend
from envforge.profiles.importing import specs
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.pythons import python
from envforge.profiles.importing.requirement import requirement
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text, broken

_MARK = "@EXPLICIT"
_PLATFORM = re.compile(r"#\s*platform:\s*(\S+)")
_PIP = re.compile(r"#\s*pip\s+(\S+)\s*@\s*(\S+)")
_ARCHIVE = re.compile(
    r"(?P<channel>.+)/(?P<subdir>[\w-]+)/(?P<name>[^/]+)-(?P<version>[^/-]+)-(?P<build>[^/-]+)\.(?:conda|tar\.bz2)"
)
_SUBDIRS = ("linux-64", "linux-aarch64", "noarch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What the address of a package says; ``channel`` is a URL."""

    channel: str
    subdir: str
    name: str
    version: str
    build: str


def archive(url: str) -> Archive | None:
    """None for what is no address of a package."""
    found = _ARCHIVE.fullmatch(unquote(url.partition("#")[0].partition("?")[0]))
    return Archive(**found.groupdict()) if found is not None else None


def is_list(content: str) -> bool:
    return any(line.strip() == _MARK for line in content.split("\n"))


def file(sketch: Sketch, text: Text) -> None:
    """Take over what is listed. Raises InvalidFileError ``invalid-import`` for what is no address of a package."""
    sketch.backend, sketch.complete = Backend.CONDA, True
    since = sketch.noted
    ask = Ask(place=text.place, whole=True)
    for number, line in enumerate(text.content.split("\n"), 1):
        place, stripped = text.place.at(number), line.strip()
        if stripped.startswith("#"):
            _remark(sketch, place, ask, stripped)
        elif stripped and stripped != _MARK:
            _package(sketch, place, stripped)
    sketch.assume(text.place, "all that is listed, pinned: a list does not say which of it were asked for", "conda")
    if len(sketch.channels) > 1:
        sketch.assume(text.place, "the order of the channels, of which the list says nothing", "conda")
    sketch.lose(text.place, "the hashes: envforge records those of what it installs")
    sketch.install(ask, since)


def _remark(sketch: Sketch, place: Place, ask: Ask, line: str) -> None:
    """For which platform the list is, and what conda-lock writes there for pip."""
    platform, pip = _PLATFORM.fullmatch(line), _PIP.fullmatch(line)
    if platform is not None and platform[1] not in _SUBDIRS:
        raise broken(place, f"the list is for `{platform[1]}`, and not for {_SUBDIRS[0]} or {_SUBDIRS[1]}")
    if pip is not None:
        found = requirement(sketch, place, _pinned(pip[1], pip[2]))
        if found is not None:
            ask.requirements.append(found)


def _pinned(name: str, url: str) -> str:
    file = unquote(url.partition("#")[0].rpartition("/")[2])
    with suppress(InvalidWheelFilename):
        return f"{name}=={parse_wheel_filename(file)[1]}"
    return f"{name} @ {url}"


def _package(sketch: Sketch, place: Place, line: str) -> None:
    found = archive(line)
    if found is None or "://" not in found.channel:
        raise broken(place, "a line of the list is the URL of a package")
    if found.subdir not in _SUBDIRS:
        raise broken(place, f"`{found.name}` is for `{found.subdir}`, and not for {_SUBDIRS[0]} or {_SUBDIRS[1]}")
    sketch.channel(place, found.channel)
    if found.name == "python":
        sketch.wants_python(place, python(found.version), f"python {found.version}")
    else:
        specs.pinned(sketch, place, f"{found.name}={found.version}={found.build}")
