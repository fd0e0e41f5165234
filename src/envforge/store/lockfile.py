"""The lock as a file of its own: a PEP 751 lock of the end, with what each step leaves under ``tool.envforge``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envforge.model.errors import UsageError
from envforge.model.export import brought, installable
from envforge.model.lock import LockedStep, LockFile
from envforge.model.state import Distribution, Origin, State

from . import pylock
from .atomic import newer

LOCK_SCHEMA = 1
_MAJOR = 1
_LARGEST = 64 << 20
_BROUGHT = "python"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PYTHON = re.compile(r"3(\.\d+){1,2}\S*", re.ASCII)
_NAMED = 20
_Key = tuple[str, str, str]


def dump(lock: LockFile, *, indexes: Mapping[str, str | None]) -> str:
    """Its text, in stable order, that any reader of PEP 751 takes for a lock of the end.

    ``indexes``: name -> URL or None where it is not known; credentials in it are left out. A wheel that was built here
    is expected beside the lock.
    """
    final: State = lock.steps[-1].state if lock.steps else {}
    states = [{name: pylock.portable(item) for name, item in step.state.items()} for step in lock.steps]
    ends = {_key(item): item for item in states[-1].values() if installable(item)} if states else {}
    passing = {_key(item): item for state in states for item in state.values() if installable(item)}
    replaced = [passing[key] for key in sorted(passing.keys() - ends.keys())]
    locked = [ends[key] for key in sorted(ends)]
    parts = [pylock.table(pylock.head(locked, lock.python))]
    if not locked:
        parts[0] += "packages = []\n"
    parts += ["[[packages]]\n" + _package(item, indexes) for item in locked]
    about: dict[str, pylock.Value] = {"schema": LOCK_SCHEMA, "name": lock.name, "python": lock.python}
    unlocked = sorted(
        f"{item.name}=={item.version}" for item in final.values() if not installable(item) and not brought(item)
    )
    if unlocked:
        about["unlocked"] = [*unlocked]
    if lock.substitutes:
        about["substitutes"] = dict(sorted(lock.substitutes.items()))
    parts.append("[tool.envforge]\n" + pylock.table(about) + f"profile = {pylock.block(lock.text)}\n")
    parts += ["[[tool.envforge.replaced]]\n" + _package(item, indexes) for item in replaced]
    for step, state in zip(lock.steps, states, strict=True):
        rows = "".join(f"  {pylock.inline(_row(state[name]))},\n" for name in sorted(state))
        head = pylock.table({"name": step.name})
        parts.append(f"[[tool.envforge.steps]]\n{head}holds = [\n{rows}]\n")
    return "\n".join(parts)


def _key(item: Distribution) -> _Key:
    return (item.name, item.version, item.sha256 or "")


def _package(item: Distribution, indexes: Mapping[str, str | None]) -> str:
    return pylock.table(pylock.package(item, indexes, {}, named=True))


def _row(item: Distribution) -> dict[str, pylock.Value]:
    row: dict[str, pylock.Value] = {"name": item.name, "version": item.version}
    if brought(item):
        return {**row, "from": _BROUGHT}
    return {**row, "sha256": item.sha256 or ""} if installable(item) else row


# -- reading -----------------------------------------------------------------------------------------------------------


def read(path: Path) -> LockFile:
    """The lock in a file. Raises UsageError ``unreadable-file``, or as `load` does."""
    try:
        if path.exists() and not path.is_file():
            raise OSError(None, "it is no file")  # noqa: TRY301 - a pipe would keep the reader waiting for ever
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UsageError("unreadable-file", f"`{path}` cannot be read", cause=cause.lower()) from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(path, ["it is no UTF-8 text"]) from error
    if len(content) > _LARGEST:
        raise _invalid(path, [f"it is larger than {_LARGEST >> 20} MiB"])
    return load(text, path)


def load(text: str, path: Path) -> LockFile:
    """The inverse of `dump`, ``path`` is what errors call it.

    What was not written down (what a distribution requires, say) is left empty. Raises UsageError ``invalid-lock``
    naming every place that is not as it must be, ``newer-record`` where a newer envforge wrote it.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _invalid(path, [f"it is no TOML: {error}"]) from error
    _refuse_newer(data, path)
    reader = _Reader()
    lock = reader.lock(data)
    if reader.mistakes or lock is None:
        raise _invalid(path, reader.mistakes)
    return lock


def _refuse_newer(data: Mapping[str, Any], path: Path) -> None:
    version = data.get("lock-version")
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if major.isdecimal() and int(major) > _MAJOR:
        raise newer(path, f"its lock-version is {version}, this envforge knows 1.0")
    own = data.get("tool", {}).get("envforge") if isinstance(data.get("tool"), dict) else None
    schema = own.get("schema") if isinstance(own, dict) else None
    if isinstance(schema, int) and schema > LOCK_SCHEMA:
        raise newer(path, f"its schema is {schema}, this envforge knows {LOCK_SCHEMA} and older")


def _invalid(path: Path, mistakes: list[str]) -> UsageError:
    more = [f"... and {len(mistakes) - _NAMED} more"] if len(mistakes) > _NAMED else []
    return UsageError(
        "invalid-lock",
        f"`{path}` is no lock that envforge can build from",
        cause="\n".join([*mistakes[:_NAMED], *more]),
        hint="`envforge lock` writes one",
    )


@dataclass(slots=True)
class _Reader:
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
        known = {**self.packages(own, "replaced", f"{where}.replaced", optional=True), **ends}
        steps = tuple(
            self.step(entry, f"{where}.steps[{position}]", known)
            for position, entry in enumerate(self.tables(own, "steps", f"{where}.steps"))
        )
        lock = LockFile(
            name=self.text(own, "name", f"{where}.name"),
            text=self.text(own, "profile", f"{where}.profile"),
            python=python,
            steps=steps,
            substitutes=substitutes,
        )
        if not self.mistakes:
            self.same_end(ends, steps)
        return lock

    def same_end(self, ends: Mapping[_Key, Distribution], steps: tuple[LockedStep, ...]) -> None:
        """``packages`` and what the last step leaves must be one, or an edit of one of them would do nothing."""
        last = {_key(item) for item in steps[-1].state.values() if item.sha256} if steps else set()
        for name, version, _ in sorted(ends.keys() - last):
            self.mistakes.append(f"packages: `{name}` {version} with this sha256 is not what the last step leaves")

    def packages(
        self, data: Mapping[str, Any], key: str, where: str, *, optional: bool = False
    ) -> dict[_Key, Distribution]:
        if optional and key not in data:
            return {}
        found: dict[_Key, Distribution] = {}
        for position, entry in enumerate(self.tables(data, key, where)):
            item = self.package(entry, f"{where}[{position}]")
            if item is not None:
                found[_key(item)] = item
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

    def step(self, entry: Mapping[str, Any], where: str, known: Mapping[_Key, Distribution]) -> LockedStep:
        state: dict[str, Distribution] = {}
        for position, row in enumerate(self.tables(entry, "holds", f"{where}.holds")):
            item = self.row(row, f"{where}.holds[{position}]", known)
            if item is None:
                continue
            if item.name in state:
                self.mistakes.append(f"{where}.holds[{position}]: `{item.name}` stands there twice")
            state[item.name] = item
        return LockedStep(name=self.text(entry, "name", f"{where}.name"), state=state)

    def row(self, row: Mapping[str, Any], where: str, known: Mapping[_Key, Distribution]) -> Distribution | None:
        name, version = self.text(row, "name", f"{where}.name"), self.text(row, "version", f"{where}.version")
        if row.get("from") == _BROUGHT:
            return Distribution(name=name, version=version, origin=Origin(kind=_BROUGHT))
        if "sha256" not in row:
            return Distribution(name=name, version=version)
        sha256 = self.sha256(row, where)
        if not sha256:
            return None
        item = known.get((name, version, sha256))
        if item is None:
            self.mistakes.append(f"{where}: no package of the lock is `{name}` {version} with this sha256")
        return item

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
