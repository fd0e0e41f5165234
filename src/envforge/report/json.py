"""The one JSON envelope of every command (schema 1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from envforge.model import wire
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding
from envforge.model.plan import Change, Plan, StepPlan
from envforge.model.progress import StepDone
from envforge.model.result import Build, Result
from envforge.model.smoked import Generated, SmokeResult
from envforge.model.views import StepRecord

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 1


def envelope(outcome: Result[Any] | EnvforgeError, command: str | None) -> str:
    """One document: ``status`` is ``failed`` for an error, ``findings`` where the exit status is 3, else ``ok``."""
    if isinstance(outcome, EnvforgeError):
        status, data, findings = "failed", {}, []
    else:
        status = "findings" if outcome.exit else "ok"
        data, findings = encode(outcome.data), [wire.finding(finding) for finding in outcome.findings]
    document = {
        "schema": SCHEMA,
        "command": command,
        "status": status,
        "data": data,
        "findings": findings,
        "error": error(outcome) if isinstance(outcome, EnvforgeError) else None,
    }
    return json.dumps(document, indent=2)


def error(value: EnvforgeError) -> dict[str, Any]:
    """``{code, message, cause, hint}``."""
    return {"code": value.code, "message": value.message, "cause": value.cause, "hint": value.hint}


def encode(value: Any) -> Any:  # noqa: PLR0911 - one line a type is the clearest form
    """JSON-able; the types that the contract gives a shape get it, every other dataclass is its fields by name."""
    shape = _SHAPES.get(type(value))
    if shape is not None:
        return shape(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def _fields(value: DataclassInstance) -> dict[str, Any]:
    return {field.name: encode(getattr(value, field.name)) for field in fields(value)}


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "profile": plan.profile.name,
        "source": plan.profile.source,
        "python": {"version": plan.profile.python, "path": plan.python},
        "backend": plan.profile.backend.value,
        "base": [wire.change(change) for change in plan.founded],
        "steps": [_planned(step) for step in plan.steps],
        "verdicts": encode(plan.verdicts),
        "smoke": [smoke.name for smoke in plan.profile.smoke],
        "totals": {"download": plan.download, "disk": plan.disk, "free": plan.free},
        "cards": list(plan.cards),
        "lost": dict(plan.lost),
        "notes": list(plan.notes),
    }


def _planned(step: StepPlan) -> dict[str, Any]:
    return {
        "name": step.step.name,
        "action": step.step.action.value,
        "arguments": list(step.step.arguments),
        "changes": encode(step.changes),
        "opens": encode(step.opens),
        "heals": [finding.id for finding in step.heals],
        "assumed": step.assumed,
        "seconds": round(step.seconds, 3),
        "builds": list(step.builds),
        "notes": list(step.notes),
    }


def _build(build: Build) -> dict[str, Any]:
    planned = {step.step.name: step for step in build.plan.steps}
    # What is refused before anything is built tells what the plan foresaw.
    steps = (
        [_built(step, planned.get(step.name)) for step in build.steps]
        if build.generation
        else list(map(_planned, build.plan.steps))
    )
    return {
        "environment": build.environment,
        "profile": build.plan.profile.name,
        "generation": build.generation,
        "prefix": build.prefix,
        "switched": build.switched,
        "continued": build.continued,
        "steps": steps,
        "verdicts": encode(build.plan.verdicts),
        "smoke": encode(build.smoke),
        "differs": list(build.differs),
        "totals": {"download": build.plan.download, "disk": build.plan.disk, "free": build.plan.free},
        "files": build.files,
        "bytes": build.bytes,
        "activation": encode(build.activation),
        "seconds": round(build.seconds, 3),
    }


def _check(result: SmokeResult) -> dict[str, Any]:
    return {
        "name": result.smoke.name,
        "ok": result.ok,
        "skipped": result.skipped,
        "ending": result.ending,
        "tail": result.tail,
        "seconds": round(result.seconds, 3),
        "generated": encode(result.generated),
    }


def _built(step: StepDone, planned: StepPlan | None) -> dict[str, Any]:
    """A step as it was done: nothing is assumed any more, what had to be built is as planned."""
    return {
        "name": step.name,
        "action": step.action,
        "changes": encode(step.changes),
        "opens": encode(step.opens),
        "heals": [finding.id for finding in step.heals],
        "assumed": False,
        "seconds": round(step.seconds, 3),
        "builds": list(planned.builds) if planned else [],
        "differs": list(step.differs),
    }


def _recorded(step: StepRecord) -> dict[str, Any]:
    return {**_fields(step), "heals": [finding for finding, _ in step.heals]}


_SHAPES: dict[type, Callable[[Any], Any]] = {
    Plan: _plan,
    Build: _build,
    Change: wire.change,
    Finding: wire.finding,
    Generated: wire.generated,
    SmokeResult: _check,
    StepRecord: _recorded,
}
