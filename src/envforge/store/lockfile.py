"""The lock as a file of its own: a PEP 751 lock of the end, with what each step leaves under ``tool.envforge``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envforge.model.errors import UsageError
from envforge.model.export import brought, installable, unlockable
from envforge.model.lock import LockFile
from envforge.model.state import Distribution, State, is_package, packages, shown

from . import pylock
from .atomic import newer
from .lock_reader import LOCK_SCHEMA, Reader, identity

_MAJOR = 1
_LARGEST = 64 << 20
_NAMED = 20


def dump(lock: LockFile, *, indexes: Mapping[str, str | None]) -> str:
    """Its text, in stable order, that any reader of PEP 751 takes for a lock of the end.

    ``indexes``: name -> URL or None where it is not known; credentials in it are left out. A wheel that was built here
    is expected beside the lock.
    """
    states = [_portable(step.state) for step in lock.steps]
    base = _portable(lock.base)
    final: State = states[-1] if states else base
    ends = {identity(item): item for item in final.values() if installable(item)}
    passing = {identity(item): item for state in states for item in state.values() if installable(item)}
    conda = {identity(item): item for state in (base, *states) for item in packages(state).values()}
    replaced = [passing[each] for each in sorted(passing.keys() - ends.keys())]
    locked = [ends[each] for each in sorted(ends)]
    parts = [pylock.table(pylock.head(locked, lock.python))]
    if not locked:
        parts[0] += "packages = []\n"
    parts += ["[[packages]]\n" + _package(item, indexes) for item in locked]
    about: dict[str, pylock.Value] = {"schema": LOCK_SCHEMA, "name": lock.name, "python": lock.python}
    unlocked = sorted(f"{item.name}=={item.version}" for item in final.values() if unlockable(item))
    if unlocked:
        about["unlocked"] = [*unlocked]
    if lock.substitutes:
        about["substitutes"] = dict(sorted(lock.substitutes.items()))
    if not lock.steps:
        about["steps"] = []
    own = "[tool.envforge]\n" + pylock.table(about) + f"profile = {pylock.block(lock.text)}\n"
    parts.append(own + (f"base = {_rows(base)}" if base else ""))
    parts += ["[[tool.envforge.conda]]\n" + _conda(conda[each]) for each in sorted(conda)]
    parts += ["[[tool.envforge.replaced]]\n" + _package(item, indexes) for item in replaced]
    for step, state in zip(lock.steps, states, strict=True):
        parts.append(f"[[tool.envforge.steps]]\n{pylock.table({'name': step.name})}holds = {_rows(state)}")
    return "\n".join(parts)


def _portable(state: State) -> State:
    return {name: pylock.portable(item) for name, item in state.items()}


def _package(item: Distribution, indexes: Mapping[str, str | None]) -> str:
    return pylock.table(pylock.package(item, indexes, {}, named=True))


def _conda(item: Distribution) -> str:
    pairs = {
        "name": shown(item.name), "version": item.version, "build": item.build, "channel": item.index,
        "file": item.file, "url": pylock.bare(item.url or ""), "sha256": item.sha256, "size": item.size,
        "repodata": item.repodata,
    }  # fmt: skip
    return pylock.table({name: value for name, value in pairs.items() if value is not None})


def _rows(state: State) -> str:
    rows = "".join(f"  {pylock.inline(_row(state[name]))},\n" for name in sorted(state))
    return f"[\n{rows}]\n"


def _row(item: Distribution) -> dict[str, pylock.Value]:
    if is_package(item.name):
        return {"conda": shown(item.name), "version": item.version, "sha256": item.sha256 or ""}
    row: dict[str, pylock.Value] = {"name": item.name, "version": item.version}
    if item.origin is not None and brought(item):
        from_package: dict[str, pylock.Value] = {"package": item.origin.package} if item.origin.package else {}
        return {**row, "from": item.origin.kind, **from_package}
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
    reader = Reader()
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
