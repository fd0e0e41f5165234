"""conda's match specs, as far as an import must understand them."""

from __future__ import annotations

import re

from envforge.profiles import values
from envforge.profiles.importing.pythons import python
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place

_SPEC = re.compile(r"(?:(?P<channel>\S+?)::)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<version>[^\[]*)(?:\[(?P<more>.*)\])?")
_VERSION = re.compile(r"version\s*=\s*(['\"]?)(.*?)\1\s*(?:,|$)")


def take(sketch: Sketch, place: Place, spec: str) -> str | None:
    """The match spec as a profile takes it; None where it is the Python's, or none: that is told."""
    text = sketch.address(place, " ".join(spec.split()), "conda")
    found = _SPEC.fullmatch(text)
    if found is not None and "://" in (found["channel"] or ""):
        sketch.channel(place, found["channel"])
        sketch.assume(place, f"`{found['name']}` comes from the first channel that has it", "conda")
        text = text.removeprefix(f"{found['channel']}::")
    if found is None or "\0" in text or "$" in text or not _is_kept(text):
        sketch.lose(place, f"`{text}`: it is no match spec that can be kept", "conda")
        return None
    if found["name"].lower() != "python":
        return text
    version = found["version"].strip()
    if found["more"]:
        inside = _VERSION.search(found["more"])
        version = inside[2] if inside else version
    if version in {"", "*"}:
        return None
    wanted, build = _without_build(version)
    if build:
        sketch.lose(place, f"the build `{build}` of Python: only its version counts", "python")
    sketch.wants_python(place, python(wanted), text)
    if found["channel"]:
        text = f"Python comes from the first channel that has it, `{found['channel']}` or another"
        sketch.assume(place, text, "python")
    return None


def pinned(sketch: Sketch, place: Place, spec: str) -> None:
    """Take over a package that was locked, as `name=version=build`."""
    if re.search(r"[\s\0\[$]", spec) or not _is_kept(spec):
        sketch.lose(place, f"`{spec}`: it is no match spec that can be kept", "conda")
    else:
        sketch.packages.append(spec)


def _is_kept(text: str) -> bool:
    try:
        values.match_spec(text)
    except ValueError:
        return False
    return True


def _without_build(version: str) -> tuple[str, str]:
    """`=3.10.4=h12_0` and `3.10.4 h12_0` hold a build behind the version."""
    found = re.fullmatch(r"(={0,2}\s*[\d.*]+)(?:=|\s+)([\w.*]+)", version)
    return (found[1], found[2]) if found else (version, "")
