"""One requirement as pip takes it, in the form that a profile takes."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from envforge.profiles import values
from envforge.profiles.importing import addresses
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place

_ARCHIVES = (".whl", ".tar.gz", ".zip")
_GIT = frozenset({"https", "http", "ssh", "git", "file"})
_NAMED = re.compile(r"\s*(?P<head>[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\])?)\s*@\s*(?P<rest>\S.*)", re.DOTALL)
_NAME = re.compile(r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?P<extras>\[[\w\s,.-]*\])?")
_CONDA_BUILT = re.compile(r"/croot/|feedstock|conda-bld|/home/conda/|/tmp/build/|/ktietz/|/b/abs_|/perseverance")
_SHOWN = 80


def requirement(sketch: Sketch, place: Place, text: str, *, editable: bool = False) -> str | None:
    """The requirement for a profile, or None where there is none: that is told.

    ``text`` is PEP 508, a URL, a path or pip's older forms of them.
    """
    stripped = " ".join(text.split())
    named = _NAMED.match(stripped)
    if named is not None and ";" not in named["head"]:
        found = _reference(sketch, place, named["rest"], named["head"])
    elif _is_reference(stripped):
        found = _reference(sketch, place, stripped, None)
    else:
        found = _plain(sketch, place, stripped)
    if found is not None and not _is_kept(found):
        sketch.lose(place, f"`{_short(found)}`: a profile cannot hold it")
        return None
    if found is not None and editable:
        sketch.assume(place, "`-e`: installed as a wheel; later edits of the source do not count")
    return found


def _is_reference(text: str) -> bool:
    head = text.partition(";")[0].strip()
    return "://" in head or head.startswith((".", "/", "~")) or "/" in head or head.endswith(_ARCHIVES)


def _plain(sketch: Sketch, place: Place, text: str) -> str | None:
    if "$" in text:
        sketch.lose(place, f"`{_short(text)}`: it depends on a variable that the source does not set")
        return None
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        sketch.lose(place, f"`{_short(text)}`: it is no requirement")
        return None
    return _without_local(sketch, place, parsed) or text


def _without_local(sketch: Sketch, place: Place, parsed: Requirement) -> str | None:
    """The requirement without local versions; None where it has none."""
    changed = []
    local = None
    for one in parsed.specifier:
        try:
            version = Version(one.version)
        except InvalidVersion:  # 2.*, or anything behind ===
            version = None
        if version is not None and version.local is not None:
            local = version.local
            changed.append(f"{'==' if one.operator == '===' else one.operator}{version.public}")
        else:
            changed.append(str(one))
    if local is None:
        return None
    parsed.specifier = SpecifierSet(",".join(changed))
    sketch.indexes.build(place, canonicalize_name(parsed.name), local)
    return str(parsed)


def _reference(sketch: Sketch, place: Place, text: str, head: str | None) -> str | None:
    """A URL, a VCS address or a path; ``head``: name and extras where it has them."""
    address, marker = _without_marker(text)
    address = sketch.address(place, address)
    if "$" in address:
        sketch.lose(place, f"`{_short(address)}`: it depends on a variable that the source does not set")
        return None
    location, _, fragment = address.partition("#")
    said = dict(part.partition("=")[::2] for part in fragment.split("&") if part)
    if location.startswith("file:") and _CONDA_BUILT.search(location) and head is not None:
        sketch.assume(place, f"`{head.strip()}` in any version: conda installed it, and pip does not say which")
        return _checked(sketch, place, f"{head}{marker}")
    head = head or _head(sketch, place, location, said)
    if head is None:
        what = "its name is in its own metadata; write" if "://" in location else "write"
        bare, bracket, extras = location.partition("[")
        sketch.lose(place, f"`{_short(location)}`: {what} `NAME{bracket}{extras} @ {_short(bare)}` into a step")
        return None
    place_of = _location(sketch, place, location, said)
    return _checked(sketch, place, f"{head} @ {place_of}{' ' if marker else ''}{marker}") if place_of else None


def _without_marker(text: str) -> tuple[str, str]:
    """An address, and the marker behind it with its semicolon."""
    found = re.match(r"(\S+?)\s*(;\s.*|\s;.*)?$", text.strip(), re.DOTALL)
    if found is None:
        return text.strip(), ""
    return found[1], (found[2] or "").strip()


def _head(sketch: Sketch, place: Place, location: str, said: dict[str, str]) -> str | None:
    """Name and extras by the fragment ``egg``, the file's name or the repository's."""
    extras = ""
    if said.get("egg"):
        found = _NAME.match(unquote(said["egg"]))
        if found is not None:
            name = re.sub(r"-\d.*$", "", found["name"])
            return f"{name}{found['extras'] or ''}"
    bracket = re.fullmatch(r"(.+?)(\[[\w\s,.-]*\])", location)
    if bracket is not None:
        location, extras = bracket[1], bracket[2]
    path = _path(location)
    file = path.rpartition("/")[2]
    with suppress(InvalidWheelFilename):
        return f"{parse_wheel_filename(file)[0]}{extras}"
    with suppress(InvalidSdistFilename):
        return f"{parse_sdist_filename(file)[0]}{extras}"
    parts = [part for part in path.split("/") if part]
    guess = None
    if location.startswith("git+") and parts:
        guess = parts[-1].rpartition("@")[0] or parts[-1]
    elif "archive" in parts[1:] and location.endswith(_ARCHIVES):
        guess = parts[parts.index("archive", 1) - 1]
    found = _NAME.fullmatch(guess.removesuffix(".git")) if guess else None
    if found is None:
        return None
    sketch.assume(place, f"the distribution is called `{found['name']}`, as its repository is")
    return found["name"]


def _path(location: str) -> str:
    try:
        return unquote(urlsplit(location).path)
    except ValueError:
        return ""


def _location(sketch: Sketch, place: Place, location: str, said: dict[str, str]) -> str | None:
    """The address with what counts of its fragment; None where envforge does not fetch from there."""
    location = re.sub(r"\[[\w\s,.-]*\]$", "", location)
    scheme = location.partition("://")[0] if "://" in location else ""
    if not scheme and re.match(r"(git|hg|svn|bzr)\+", location):
        sketch.lose(place, f"`{_short(location)}`: write its address as `git+ssh://git@HOST/PATH`")
        return None
    if "+" in scheme:
        system, _, rest = scheme.partition("+")
        if system != "git" or rest not in _GIT:
            sketch.lose(place, f"`{_short(location)}`: sources are taken from Git only, by {', '.join(sorted(_GIT))}")
            return None
        kept = {key: said[key] for key in ("subdirectory",) if said.get(key)}
    elif scheme in {"http", "https"}:
        if not _path(location).endswith(_ARCHIVES):
            sketch.lose(place, f"`{_short(location)}`: it names neither a wheel nor an sdist")
            return None
        kept = _hash(sketch, place, said)
    elif location.startswith("~"):
        sketch.lose(place, f"`{_short(location)}`: a path in a profile begins at its folder or at `/`")
        return None
    elif scheme in {"", "file"}:
        sketch.assume(place, "a path counts from the folder of the profile")
        kept = _hash(sketch, place, said)
    else:
        sketch.lose(place, f"`{_short(location)}`: `{scheme}` is no scheme that is asked")
        return None
    return location + ("#" + "&".join(f"{key}={value}" for key, value in kept.items()) if kept else "")


def _hash(sketch: Sketch, place: Place, said: dict[str, str]) -> dict[str, str]:
    if said.get("subdirectory"):
        sketch.lose(place, "`subdirectory` works with Git only")
    if re.fullmatch(r"[0-9a-fA-F]{64}", said.get("sha256", "")):
        return {"sha256": said["sha256"]}
    if set(said) & {"md5", "sha1", "sha224", "sha384", "sha512", "sha256"}:
        sketch.lose(place, "a hash that is no whole sha256: envforge checks none but that")
    return {}


def _checked(sketch: Sketch, place: Place, text: str) -> str | None:
    try:
        return str(Requirement(text))
    except InvalidRequirement:
        sketch.lose(place, f"`{_short(text)}`: it is no requirement")
        return None


def _is_kept(text: str) -> bool:
    try:
        values.distribution(Requirement(values.requirement(text)).name)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    text, _ = addresses.bare(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
