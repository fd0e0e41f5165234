"""The envforge that runs: its files, and those of all that it requires, as they are installed here."""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import envforge
from envforge.model.bundle import Program
from envforge.model.errors import EnvforgeError
from envforge.system import environ

from .needs import needs

_NOTES = frozenset({"INSTALLER", "REQUESTED", "direct_url.json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Itself:
    """``files``: (name, where it lies), sorted; a name begins with ``site/``, or with ``bin/`` for a program.

    ``metadata``: the METADATA of envforge itself, by its name.
    """

    program: Program
    files: tuple[tuple[str, Path], ...]
    metadata: tuple[str, str]


def look(data: Mapping[str, Path]) -> Itself:
    """``data``: name -> folder of what ships with envforge and, in a checkout, lies outside of the package.

    Raises EnvforgeError ``not-packable`` where an installation does not say what belongs to it.
    """
    wanted = _requirements()
    found = sorted(_closure(wanted).items())
    files = dict(_package(data))
    for _, distribution in found:
        files |= dict(_installed(distribution))
    lines = ["Metadata-Version: 2.1", "Name: envforge", f"Version: {envforge.__version__}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in wanted]
    return Itself(
        program=Program(
            version=envforge.__version__,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            abi=str(sysconfig.get_config_var("SOABI")),
            needs=needs((_platforms(each) for _, each in found), glibc=environ.glibc()),
        ),
        files=tuple(sorted(files.items())),
        metadata=(f"site/envforge-{envforge.__version__}.dist-info/METADATA", "\n".join([*lines, ""])),
    )


def _requirements() -> tuple[str, ...]:
    """What envforge requires: as it was installed or, in a checkout, as its project file says."""
    project = Path(envforge.__file__).parents[2] / "pyproject.toml"
    try:
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if table["name"] == "envforge":
            return tuple(table["dependencies"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        return tuple(metadata.requires("envforge") or ())
    except metadata.PackageNotFoundError as error:
        raise _unknown("envforge", "it was not installed, and this is no checkout of it") from error


def _closure(requirements: tuple[str, ...]) -> dict[str, metadata.Distribution]:
    """Canonical name -> distribution, of all that these require here, extras included."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(Requirement(line), "") for line in requirements]
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            distribution = found.setdefault(name, metadata.distribution(requirement.name))
        except metadata.PackageNotFoundError as error:
            raise _unknown(requirement.name, "it is not installed") from error
        for asked in {"", *requirement.extras} - {known for owner, known in seen if owner == name}:
            seen.add((name, asked))
            left += [(Requirement(line), asked) for line in distribution.requires or ()]
    return found


def _package(data: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    package = Path(envforge.__file__).parent
    for folder, place in ((package, "envforge"), *((path, f"envforge/_data/{name}") for name, path in data.items())):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"site/{place}/{path.relative_to(folder).as_posix()}", path


def _installed(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """What a distribution's RECORD names, without bytecode and the scripts that name this installation's Python."""
    if distribution.files is None:
        raise _unknown(distribution.name, "it has no RECORD, so nothing says which files are its own")
    site = Path(str(distribution.locate_file("")))
    for entry in distribution.files:
        path = Path(str(entry.locate()))
        if entry.suffix == ".pyc" or entry.name in _NOTES:
            continue
        if ".." not in entry.parts and not entry.is_absolute():
            yield f"site/{entry.as_posix()}", site / entry
        elif path.parent.name == "bin" and _is_program(path):
            yield f"bin/{path.name}", path


def _is_program(path: Path) -> bool:
    """Whether it is there, which no script is where a bundle brought this installation, and is no script."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) != b"#!"


def _platforms(distribution: metadata.Distribution) -> list[str]:
    lines = (distribution.read_text("WHEEL") or "").splitlines()
    return [line.rpartition("-")[2].strip() for line in lines if line.startswith("Tag:")]


def _unknown(name: str, cause: str) -> EnvforgeError:
    return EnvforgeError(
        "not-packable",
        f"a bundle carries envforge itself, and `{name}` of this installation cannot be packed",
        cause=cause,
        hint="install envforge into a virtual environment of its own, and run it from there",
    )
