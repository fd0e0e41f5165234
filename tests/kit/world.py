"""The format of `tests/worlds`: YAML to values, strictly, so that a typo in a world fails instead of passing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from . import packages
from .channel import Channel, Package
from .elf import Elf
from .index import Fault, Index
from .wheels import Artefact, Sdist, Wheel

WORLDS = Path(__file__).parent.parent / "worlds"

_WORLD = {"summary", "indexes", "channels", "profile", "config", "machine", "ambient", "files", "expect"}
_INDEX = {"wheels", "page", "metadata", "hashes", "sizes", "ranges", "path", "urls", "auth", "hidden", "faults"}
_WHEEL = {"requires", "extras", "files", "build", "tag", "scripts", "python", "record", "sdist", "fails"}
_PACKAGE = {"requires", "files", "scripts", "depends", "holds", "prefixed"}
_RUN = {
    "run", "exit", "steps", "findings", "error", "says", "not says", "installed", "in use", "contains", "requests",
    "builds", "data", "before", "environment", "verdicts", "differs",
}  # fmt: skip
_BEFORE = {"profile", "publish", "withdraw", "write", "lose", "variables", "site", "in place", "pip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One world, read. ``runs``: the entries of ``expect`` as they stand, keys checked."""

    name: str
    summary: str
    indexes: Mapping[str, Index]
    channels: Mapping[str, Channel] = field(default_factory=dict)
    profile: Mapping[str, Any] | str
    config: Mapping[str, Any] | None = None
    machine: Mapping[str, Any] | None = None
    home_files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()


def names() -> list[str]:
    return sorted(path.stem for path in WORLDS.glob("*.yaml"))


def read(name: str, log: Path) -> World:
    """Read ``tests/worlds/NAME.yaml``; ``log`` is where the builds of sdists are written down."""
    data = yaml.safe_load((WORLDS / f"{name}.yaml").read_text(encoding="utf-8"))
    _check(data, _WORLD, name)
    ambient = data.get("ambient", {})
    _check(ambient, {"files", "variables"}, f"{name}: ambient")
    runs = data["expect"]
    for position, run in enumerate(runs, start=1):
        _check(run, _RUN, f"{name}: expect {position}")
        _check(run.get("before", {}), _BEFORE, f"{name}: before of {position}")
    return World(
        name=name,
        summary=data["summary"],
        indexes={key: _index(value, f"{name}: {key}", log) for key, value in data.get("indexes", {}).items()},
        channels={key: Channel(packages=conda(value)) for key, value in data.get("channels", {}).items()},
        profile=data.get("profile", {}),
        config=data.get("config"),
        machine=data.get("machine"),
        home_files=ambient.get("files", {}),
        variables=ambient.get("variables", {}),
        files=data.get("files", {}),
        runs=runs,
    )


def wheels(entries: Sequence[Any], log: Path) -> tuple[Artefact, ...]:
    """``name version``, ``{name version: [requirement]}`` or ``{name version: {...}}``, each to a wheel or sdist."""
    return tuple(_artefact(entry, log) for entry in entries)


def conda(entries: Sequence[Any]) -> tuple[Package, ...]:
    """``python``, ``name version`` (a module of Python) or ``{name version: {...}}``, each to a package.

    ``prefixed``: files that hold the prefix; ``holds``: path in the prefix -> text, of a package that is no Python.
    """
    return tuple(_package(entry) for entry in entries)


def _package(entry: Any) -> Package:
    title, details = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
    if title == "python":
        return packages.python()
    name, version = title.split()
    _check(details, _PACKAGE, title)
    if details.get("prefixed"):
        return packages.prefixed(name, version)
    if "holds" in details:
        depends = tuple(details.get("depends", ()))
        return Package(name=name, version=version, depends=depends, files=details["holds"])
    return packages.module(
        name,
        version,
        requires=tuple(details.get("requires", ())),
        files=details.get("files"),
        scripts=details.get("scripts"),
    )


def fill(value: Any, places: Mapping[str, str]) -> Any:
    """Put the places (``{index:NAME}``, ``{root}``, ...) into every string; other braces stay as they are."""
    if isinstance(value, str):
        return re.sub(r"\{([a-z]+(?::[\w-]+)?)\}", lambda match: places.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {fill(key, places): fill(item, places) for key, item in value.items()}
    return [fill(item, places) for item in value] if isinstance(value, list) else value


def _check(data: Any, allowed: set[str], where: str) -> None:
    assert isinstance(data, Mapping), f"{where}: not a mapping"
    unknown = set(data) - allowed
    assert not unknown, f"{where}: unknown keys {sorted(unknown)}"


def _index(data: Any, where: str, log: Path) -> Index:
    if isinstance(data, list):
        data = {"wheels": data}
    _check(data, _INDEX, where)
    options = {key: value for key, value in data.items() if key not in ("wheels", "faults")}
    faults = [Fault(**fault) for fault in data.get("faults", [])]
    return Index(artefacts=wheels(data.get("wheels", []), log), faults=faults, **options)


def _artefact(entry: Any, log: Path) -> Artefact:
    title, details = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
    if isinstance(details, list):
        details = {"requires": details}
    name, version = title.split()
    _check(details, _WHEEL, title)
    own = {"sdist", "fails", "requires", "extras", "files"}
    options = {key: value for key, value in details.items() if key not in own}
    wheel = Wheel(
        name=name,
        version=version,
        requires=tuple(details.get("requires", ())),
        extras={extra: tuple(items) for extra, items in details.get("extras", {}).items()},
        files={path: _content(value) for path, value in details.get("files", {}).items()},
        **options,
    )
    if "sdist" not in details:
        return wheel
    return Sdist(wheel=wheel, metadata=details["sdist"], log=str(log), fails=details.get("fails"))


def _content(value: Any) -> str | bytes:
    """Text, or a compiled file by what `kit.elf.Elf` takes."""
    return Elf(**value).bytes() if isinstance(value, Mapping) else str(value)
