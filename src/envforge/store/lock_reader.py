"""Reads a lock that a hand may have edited: everything that is not as it must be, with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envforge.model.lock import LockedStep, LockFile
from envforge.model.state import Distribution, Origin, State, is_package, package_key, shown

LOCK_SCHEMA = 1
_BROUGHT = ("python", "conda")
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PYTHON = re.compile(r"3(\.\d+){1,2}\S*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_.+!-]+", re.ASCII)
_ENDINGS = (".conda", ".tar.bz2")
Key = tuple[str, str, str]


def identity(item: Distribution) -> Key:
    """What tells one file of a lock from all others."""
    return (item.name, item.version, item.sha256 or "")


@dataclass(slots=True)
class Reader:
    """Collects every mistake with its place; what is wrong reads as nothing."""

    mistakes: list[str] = field(default_factory=list)

    def lock(self, data: Mapping[str, Any]) -> LockFile | None:
        self.text(data, "lock-version", "lock-version")
        own = data.get("tool", {}).get("envforge") if isinstance(data.get("tool"), dict) else None
        if not isinstance(own, dict) or "steps" not in own:
            self.mistakes.append("it has no table `tool.envforge` with `steps`: envforge did not write it")
            return None
        where = "tool.envforge"
        if own.get("schema") != LOCK_SCHEMA:
            self.mistakes.append(f"{where}.schema: {LOCK_SCHEMA} was expected")
        python = self.text(own, "python", f"{where}.python")
        if python and not _PYTHON.fullmatch(python):
            self.mistakes.append(f"{where}.python: `{python}` is no version")
        substitutes = own.get("substitutes", {})
        if not isinstance(substitutes, dict) or not all(isinstance(value, str) for value in substitutes.values()):
            self.mistakes.append(f"{where}.substitutes: a table of texts was expected")
        ends = self.packages(data, "packages", "packages")
        conda = self.conda(own, f"{where}.conda")
        known = {**self.packages(own, "replaced", f"{where}.replaced", optional=True), **ends, **conda}
        base = self.state(own, "base", f"{where}.base", known) if "base" in own else {}
        steps = tuple(
            self.step(entry, f"{where}.steps[{position}]", known)
            for position, entry in enumerate(self.tables(own, "steps", f"{where}.steps"))
        )
        lock = LockFile(
            name=self.text(own, "name", f"{where}.name"),
            text=self.text(own, "profile", f"{where}.profile"),
            python=python,
            base=base,
            steps=steps,
            substitutes=substitutes,
        )
        if not self.mistakes:
            self.all_used(lock, ends, conda)
        return lock

    def all_used(self, lock: LockFile, ends: Mapping[Key, Distribution], conda: Mapping[Key, Distribution]) -> None:
        """``packages`` and what the last step leaves must be one, or an edit of one of them would do nothing."""
        states = [lock.base, *(step.state for step in lock.steps)]
        last = {identity(item) for item in states[-1].values() if item.sha256}
        for name, version, _ in sorted(ends.keys() - last):
            self.mistakes.append(f"packages: `{name}` {version} with this sha256 is not what the last step leaves")
        ever = {identity(item) for state in states for item in state.values()}
        for name, version, _ in sorted(conda.keys() - ever):
            self.mistakes.append(
                f"tool.envforge.conda: neither the base nor a step holds `{shown(name)}` {version} with this sha256"
            )

    def packages(
        self, data: Mapping[str, Any], key: str, where: str, *, optional: bool = False
    ) -> dict[Key, Distribution]:
        if optional and key not in data:
            return {}
        found: dict[Key, Distribution] = {}
        for position, entry in enumerate(self.tables(data, key, where)):
            item = self.package(entry, f"{where}[{position}]")
            if item is not None:
                found[identity(item)] = item
        return found

    def package(self, entry: Mapping[str, Any], where: str) -> Distribution | None:
        name = self.text(entry, "name", f"{where}.name")
        version = self.text(entry, "version", f"{where}.version")
        wheels = entry.get("wheels")
        wheel = wheels[0] if isinstance(wheels, list) and len(wheels) == 1 else None
        if not isinstance(wheel, dict):
            self.mistakes.append(f"{where}.wheels: one wheel was expected")
            return None
        where = f"{where}.wheels[0]"
        file = self.text(wheel, "name", f"{where}.name")
        build = self.build(file, name, version, where) if name and version and file else None
        size = wheel.get("size")
        if size is not None and (type(size) is not int or size < 0):
            self.mistakes.append(f"{where}.size: a number was expected")
            size = None
        hashes = wheel.get("hashes")
        sha256 = self.sha256(hashes if isinstance(hashes, dict) else {}, f"{where}.hashes")
        tool = entry.get("tool")
        own = tool.get("envforge", {}) if isinstance(tool, dict) else {}
        own = own if isinstance(own, dict) else {}
        return Distribution(
            name=name,
            version=version,
            build=build,
            index=self.text(own, "index", f"{where} tool.envforge.index", optional=True) or None,
            file=file,
            url=self.text(wheel, "url", f"{where}.url", optional=True) or None,
            sha256=sha256,
            size=size,
            origin=self.origin(own.get("origin"), f"{where} tool.envforge.origin"),
        )

    def build(self, file: str, name: str, version: str, where: str) -> str | None:
        """The build tag of a wheel's name, which must be a wheel of this distribution."""
        try:
            owner, found, build, _ = parse_wheel_filename(file)
            same = found == Version(version)
        except (InvalidWheelFilename, InvalidVersion):
            self.mistakes.append(f"{where}.name: `{file}` is the name of no wheel")
            return None
        if owner != name or not same:
            self.mistakes.append(f"{where}.name: `{file}` is no wheel of `{name}` {version}")
        return f"{build[0]}{build[1]}" if build else None

    def origin(self, found: Any, where: str) -> Origin | None:
        if found is None:
            return None
        names = ("url", "sha256", "commit")
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            self.mistakes.append(f"{where}: a table of texts was expected")
            return None
        return Origin(kind=self.text(found, "kind", f"{where}.kind"), **{name: found.get(name) for name in names})

    def conda(self, own: Mapping[str, Any], where: str) -> dict[Key, Distribution]:
        found = {}
        for position, entry in enumerate(self.tables(own, "conda", where) if "conda" in own else ()):
            item = self.conda_package(entry, f"{where}[{position}]")
            if item is not None:
                found[identity(item)] = item
        return found

    def conda_package(self, entry: Mapping[str, Any], where: str) -> Distribution | None:
        """A package as the lock names it, which must be what its channel says of it: that is what is installed."""
        said = self.repodata(entry, f"{where}.repodata")
        name, version, build, file, url = (
            self.text(entry, each, f"{where}.{each}") for each in ("name", "version", "build", "file", "url")
        )
        sha256, size = self.sha256(entry, where), entry.get("size")
        channel = self.text(entry, "channel", f"{where}.channel", optional=True) or None
        if said is None or not (name and version and build and file and url and sha256):
            return None
        words = all(_WORD.fullmatch(each) for each in (name, version, build))
        if not words or file not in {f"{name}-{version}-{build}{ending}" for ending in _ENDINGS}:
            self.mistakes.append(f"{where}.file: `{file}` is no package of `{name}` {version} {build}")
        told = {
            "name": name, "version": version, "build": build, "fn": file, "url": url, "sha256": sha256, "size": size,
        }  # fmt: skip
        for what in [each for each, value in told.items() if said.get(each) != value]:
            called = "file" if what == "fn" else what
            self.mistakes.append(f"{where}.{called}: its `repodata` has another `{what}`")
        return Distribution(
            name=package_key(name), version=version, build=build, index=channel, file=file, url=url, sha256=sha256,
            size=size, installer="conda", repodata=json.dumps(said, sort_keys=True),
        )  # fmt: skip

    def repodata(self, entry: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self.text(entry, "repodata", where) or "{}")
        except (ValueError, RecursionError) as error:
            self.mistakes.append(f"{where}: it is no JSON: {error}")
            return None
        if not isinstance(found, dict) or not _is_record(found):
            self.mistakes.append(f"{where}: what a channel says of a package was expected")
            return None
        return found

    def step(self, entry: Mapping[str, Any], where: str, known: Mapping[Key, Distribution]) -> LockedStep:
        state = self.state(entry, "holds", f"{where}.holds", known)
        return LockedStep(name=self.text(entry, "name", f"{where}.name"), state=state)

    def state(self, table: Mapping[str, Any], name: str, where: str, known: Mapping[Key, Distribution]) -> State:
        state: dict[str, Distribution] = {}
        for position, row in enumerate(self.tables(table, name, where)):
            item = self.row(row, f"{where}[{position}]", known)
            if item is None:
                continue
            if item.name in state:
                self.mistakes.append(f"{where}[{position}]: `{shown(item.name)}` stands there twice")
            state[item.name] = item
        return state

    def row(self, row: Mapping[str, Any], where: str, known: Mapping[Key, Distribution]) -> Distribution | None:
        what = "conda" if "conda" in row else "name"
        name, version = self.text(row, what, f"{where}.{what}"), self.text(row, "version", f"{where}.version")
        if what == "name" and is_package(name):
            self.mistakes.append(f"{where}.name: `{name}` is the name of no distribution")
            return None
        if what == "name" and "from" in row:
            return self.brought(row, where, name, version)
        if what == "name" and "sha256" not in row:
            return Distribution(name=name, version=version)
        sha256 = self.sha256(row, where)
        if not sha256:
            return None
        item = known.get((package_key(name) if what == "conda" else name, version, sha256))
        if item is None:
            self.mistakes.append(f"{where}: no package of the lock is `{name}` {version} with this sha256")
        return item

    def brought(self, row: Mapping[str, Any], where: str, name: str, version: str) -> Distribution:
        """What came with the Python, or in a conda package."""
        kind = self.text(row, "from", f"{where}.from")
        if kind not in _BROUGHT:
            self.mistakes.append(f"{where}.from: {' or '.join(f'`{each}`' for each in _BROUGHT)} was expected")
        package = self.text(row, "package", f"{where}.package") if kind == "conda" else None
        return Distribution(
            name=name,
            version=version,
            installer="conda" if kind == "conda" else None,
            origin=Origin(kind=kind, package=package),
        )

    def sha256(self, table: Mapping[str, Any], where: str) -> str:
        found = table.get("sha256")
        if not isinstance(found, str) or not _SHA256.fullmatch(found):
            self.mistakes.append(f"{where}.sha256: 64 digits of lower-case hex were expected")
            return ""
        return found

    def tables(self, data: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
        found = data.get(key)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.mistakes.append(f"{where}: a list of tables was expected")
            return []
        return found

    def text(self, table: Mapping[str, Any], key: str, where: str, *, optional: bool = False) -> str:
        found = table.get(key)
        if found is None and optional:
            return ""
        if not isinstance(found, str) or not found:
            self.mistakes.append(f"{where}: a text was expected")
            return ""
        return found


def _is_record(found: Mapping[str, Any]) -> bool:
    """Whether it has, in their types, the parts of a channel's record that are read from it."""
    texts = (found.get(name) for name in ("channel", "subdir"))
    lists = [found.get(name, []) for name in ("depends", "constrains")]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(each, list) and all(isinstance(line, str) for line in each) for each in lists)
        and type(found.get("size", 0)) is int
    )
