"""The whole machine in one value, and that value as a file."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from envforge.model.errors import UsageError
from envforge.model.machine import Ambient, Asked, Card, Interpreter, Machine, Proxy, Slice, Toolkit
from envforge.system import environ

from . import ambient, gpus, pythons, toolkits

MACHINE_SCHEMA = 2
"""2 added ``asked``, ``toolkits``, ``proxies`` and the slices of a card; what is left out has its default."""

T = TypeVar("T")
_KINDS: dict[str, type] = {"str": str, "int": int, "bool": bool}
_ENTRIES = {kind.__name__: kind for kind in (Ambient, Asked, Card, Interpreter, Proxy, Slice, Toolkit)}


def look(home: Path, *, software: bool = True) -> Machine:
    """This machine; ``home`` (which need not exist yet) says on which disk the free space counts.

    Without ``software``, Pythons (each is run once), toolkits, proxies and ambient configuration are left out.
    """
    cards = gpus.look()
    return Machine(
        system=environ.operating_system(),
        architecture=environ.architecture(),
        glibc=environ.glibc(),
        hostname=environ.hostname(),
        gpus_status=cards.status,
        gpus=cards.cards,
        asked=cards.asked,
        driver=cards.driver,
        cuda=cards.cuda,
        toolkits=toolkits.look() if software else (),
        disk_free=_free(home),
        pythons=pythons.everything() if software else (),
        ambient=ambient.look() if software else (),
        proxies=ambient.proxies() if software else (),
        user_site=ambient.user_site(),
    )


def _free(folder: Path) -> int:
    for place in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return 0


def dumps(machine: Machine) -> str:
    """The machine as JSON text, keys in stable order."""
    return json.dumps({"schema": MACHINE_SCHEMA, **asdict(machine)}, indent=2) + "\n"


def loads(text: str, source: str) -> Machine:
    """A machine from the text of a file that ``source`` names.

    Raises UsageError ``newer-record`` or ``invalid-machine``; the cause names the field.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(source, f"it is no JSON: {error}") from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise _invalid(source, "it has no `schema` number")
    if schema > MACHINE_SCHEMA:
        raise UsageError(
            "newer-record",
            f"`{source}` was written by a newer envforge",
            cause=f"its schema is {schema}, this envforge knows {MACHINE_SCHEMA} and older",
            hint="use the newer envforge, or save it again with this one",
        )
    try:
        return _value(Machine, data, "the machine")
    except (TypeError, ValueError) as error:
        raise _invalid(source, str(error)) from error


def _value(kind: type[T], data: Any, where: str) -> T:
    """A frozen value from a JSON object whose keys and types are those of its fields."""
    if not isinstance(data, dict):
        message = f"an entry of `{where}` is no object"
        raise TypeError(message)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type] # all kinds are dataclasses
    if unknown := sorted(set(data) - set(known)):
        message = f"`{unknown[0]}` is no field of `{where}`"
        raise ValueError(message)
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name not in data:
            if field.default is MISSING:
                message = f"`{name}` is missing in `{where}`"
                raise ValueError(message)
            continue
        values[name] = _checked(data[name], str(field.type), f"{where}.{name}")
    return kind(**values)


def _checked(value: Any, annotation: str, where: str) -> Any:
    if annotation == "tuple[str, ...]":
        texts = _list(value, where)
        if not all(isinstance(text, str) for text in texts):
            message = f"`{where}` is no list of texts"
            raise TypeError(message)
        return tuple(texts)
    if entries := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", annotation):
        inside = where.removeprefix("the machine.")
        return tuple(_value(_ENTRIES[entries[1]], entry, inside) for entry in _list(value, inside))
    name = annotation.removesuffix(" | None")
    if name not in _KINDS or (value is None and name != annotation):
        return value
    if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and name != "bool"):
        message = f"`{where}` is no {name}"
        raise TypeError(message)
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        message = f"`{where}` is no list"
        raise TypeError(message)
    return value


def _invalid(source: str, cause: str) -> UsageError:
    return UsageError(
        "invalid-machine",
        f"`{source}` describes no machine",
        cause=cause,
        hint="write it with `envforge machine --save FILE`",
    )
