"""One file that can be installed, and the choice among those that an index offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envforge.model.state import Origin

from .pages import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A file of an index, or a wheel of envforge's own store (``built``: where that came from).

    ``index`` is the name of the index that serves it, ``origin`` the router's key of it. ``id`` names the file towards
    the router: its sha256, or a digest of its URL where the index gives no hash. ``sources``: its addresses, in order;
    ``url``: the one at the index itself, None where only mirrors were asked. ``sdist``: what the wheel is still to be
    built from, inside the environment, once that holds what the build needs.
    """

    name: str
    version: str
    file: str
    id: str
    origin: str
    index: str | None
    sha256: str | None
    size: int | None
    sources: tuple[str, ...] = ()
    url: str | None = None
    build: str | None = None
    built: Origin | None = None
    sdist: Artefact | None = None

    @property
    def wheel(self) -> bool:
        return self.file.endswith(".whl")


@lru_cache(maxsize=65536)
def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def version_of(file: str, name: str) -> Version | None:
    """The version that a file name states, None where it is no wheel or sdist of the canonical ``name``.

    By hand, since a plan asks it of some 60,000 names; what is taken in the end goes through packaging's own parser.
    """
    if file.endswith(".whl"):
        parts = file[:-4].split("-")
        owner, version = (parts[0], parts[1]) if len(parts) in {5, 6} else ("", "")
    else:
        owner, _, version = file.removesuffix(".tar.gz").removesuffix(".zip").rpartition("-")
    return (_version(version) or _version(version.replace("_", "+", 1))) if canonicalize_name(owner) == name else None


def choose(rows: Iterable[Row], name: str, version: str, rank: Mapping[str, int]) -> Row | None:
    """The file that an installer takes for ``version``: the wheel of the best tag and highest build, or the sdist.

    ``rank``: wheel tag (``cp310-cp310-manylinux_2_17_x86_64``) -> its place, best first. None where no file of it fits.
    """
    wanted = Version(version)
    best: tuple[int, tuple[int, str], Row] | None = None
    sdist: Row | None = None
    for row in rows:
        if version_of(row.file, name) != wanted:
            continue
        if not row.file.endswith(".whl"):
            sdist = row if sdist is None or row.file.endswith(".tar.gz") else sdist
            continue
        try:
            _, _, build, offered = parse_wheel_filename(row.file)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        fitting = [rank[str(tag)] for tag in offered if str(tag) in rank]
        if not fitting:
            continue
        candidate = (-min(fitting), build or (0, ""), row)
        if best is None or candidate[:2] > best[:2]:
            best = candidate
    return best[2] if best else sdist


def build_tag(file: str) -> str | None:
    """The build tag of a wheel's name as it stands there, None where it has none."""
    try:
        build = parse_wheel_filename(file)[2]
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return f"{build[0]}{build[1]}" if build else None
