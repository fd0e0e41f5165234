"""The facts of this host, and of another one that were saved to a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.machine import Ambient, Card, Interpreter, Machine
from envforge.model.result import Result
from envforge.probe import machine as probe

from .shop import Shop

_SCHEMA = 1


def machine(shop: Shop, *, save: Path | None = None) -> Result[Machine]:
    """Look at this host; with ``save`` also write what was found there, as JSON for `load`.

    Raises EnvforgeError ``not-writable`` where the file cannot be written.
    """
    found = probe.look(shop.home.root)
    if save is not None:
        try:
            save.write_text(json.dumps({"schema": _SCHEMA, **asdict(found)}, indent=2) + "\n", encoding="ascii")
        except OSError as error:
            raise EnvforgeError("not-writable", f"`{save}` cannot be written", cause=error.strerror) from error
    return Result(command="machine", data=found)


def load(path: Path) -> Machine:
    """A machine that `envforge machine --save` wrote; raises UsageError ``invalid-machine`` or ``newer-record``."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _invalid(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _invalid(path, f"it is no JSON: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, int):
        raise _invalid(path, "it has no `schema` number")
    if schema > _SCHEMA:
        raise UsageError("newer-record", f"`{path}` was written by a newer envforge", hint="use that envforge")
    try:
        return _machine(document)
    except KeyError as error:
        raise _invalid(path, f"`{error.args[0]}` is missing") from error
    except (TypeError, AttributeError) as error:
        raise _invalid(path, str(error)) from error


def _machine(data: Mapping[str, Any]) -> Machine:
    return Machine(
        system=_text(data, "system"),
        architecture=_text(data, "architecture"),
        glibc=_maybe(data, "glibc"),
        hostname=_text(data, "hostname"),
        gpus_status=_text(data, "gpus_status"),
        gpus=tuple(_card(one) for one in data["gpus"]),
        driver=_maybe(data, "driver"),
        cuda=_maybe(data, "cuda"),
        disk_free=_number(data, "disk_free"),
        pythons=tuple(
            Interpreter(path=_text(one, "path"), version=_text(one, "version"), how=_text(one, "how"))
            for one in data["pythons"]
        ),
        ambient=tuple(
            Ambient(
                tool=_text(one, "tool"),
                source=_text(one, "source"),
                settings=tuple(str(name) for name in one["settings"]),
            )
            for one in data["ambient"]
        ),
        user_site=_maybe(data, "user_site"),
    )


def _card(data: Mapping[str, Any]) -> Card:
    return Card(
        index=_number(data, "index"),
        uuid=_text(data, "uuid"),
        name=_text(data, "name"),
        compute_capability=_text(data, "compute_capability"),
        memory=_number(data, "memory"),
        pci_bus=_maybe(data, "pci_bus"),
        mig=data["mig"] is True,
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    if not isinstance(data[name], str):
        message = f"`{name}` is no text"
        raise TypeError(message)
    return str(data[name])


def _maybe(data: Mapping[str, Any], name: str) -> str | None:
    return None if data[name] is None else _text(data, name)


def _number(data: Mapping[str, Any], name: str) -> int:
    if not isinstance(data[name], int):
        message = f"`{name}` is no whole number"
        raise TypeError(message)
    return int(data[name])


def _invalid(path: Path, cause: str) -> UsageError:
    return UsageError(
        "invalid-machine",
        f"`{path}` is no machine file",
        cause=cause,
        hint="`envforge machine --save FILE` writes one",
    )
