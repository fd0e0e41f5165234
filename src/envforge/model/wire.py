"""Changes and findings as JSON-able dicts and back: one shape for `--json` and for the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .finding import Finding, Severity
from .plan import Because, Change
from .smoked import Generated
from .state import Distribution, shown
from .typed import checked


def change(value: Change) -> dict[str, Any]:
    """``{name, from, to, from_index, index, size, because}``; versions, bytes still to fetch, and a sentence.

    ``from`` None = added, ``to`` None = removed; ``index`` is the profile's name for it.
    """
    before, after = value.before, value.after
    return {
        "name": shown(value.name),
        "from": before.version if before else None,
        "to": after.version if after else None,
        "from_index": before.index if before else None,
        "index": after.index if after else None,
        "size": after.size if after else None,
        "because": str(value.because) if value.because else None,
    }


def finding(value: Finding) -> dict[str, Any]:
    """``{id, severity, subject, step, message, evidence, remedy}``."""
    return {
        "id": value.id,
        "severity": value.severity.value,
        "subject": value.subject,
        "step": value.step,
        "message": value.message,
        "evidence": dict(value.evidence),
        "remedy": value.remedy,
    }


def generated(value: Generated) -> dict[str, Any]:
    """The fields by name, and ``tokens_per_second``."""
    return {
        "text": value.text,
        "tokens": value.tokens,
        "seconds": round(value.seconds, 6),
        "tokens_per_second": round(value.tokens_per_second, 2),
        "load_seconds": round(value.load_seconds, 3),
        "attention": value.attention,
        "memory": value.memory,
        "device": value.device,
        "versions": dict(value.versions),
    }


def heals(values: tuple[Finding, ...]) -> list[list[str]]:
    """What a step healed, for the journal: ``[[id, subject], ...]``."""
    return [[value.id, value.subject] for value in values]


def read_change(data: Mapping[str, Any]) -> Change:
    """The inverse of `change`, as far as the shape goes: the sentence of ``because`` is kept as its requirement.

    Raises KeyError or TypeError for another shape.
    """
    name = str(data["name"])
    because = data.get("because")
    return Change(
        name=name,
        before=_distribution(name, data["from"], data.get("from_index"), None),
        after=_distribution(name, data["to"], data.get("index"), data.get("size")),
        because=_because(str(because)) if because is not None else None,
    )


def read_finding(data: Mapping[str, Any]) -> Finding:
    """The inverse of `finding`. Raises KeyError, TypeError or ValueError for another shape."""
    return checked(
        Finding(
            id=str(data["id"]),
            severity=Severity(data["severity"]),
            subject=str(data["subject"]),
            message=str(data["message"]),
            step=data.get("step"),
            evidence=dict(data.get("evidence") or {}),
            remedy=data.get("remedy"),
        )
    )


def read_generated(data: Mapping[str, Any]) -> Generated:
    """The inverse of `generated`. Raises KeyError, TypeError, ValueError or AttributeError for another shape."""
    return checked(
        Generated(
            text=data["text"],
            tokens=data["tokens"],
            seconds=float(data["seconds"]),
            load_seconds=float(data["load_seconds"]),
            attention=data["attention"],
            memory=data["memory"],
            device=data["device"],
            versions={str(name): str(version) for name, version in data["versions"].items()},
        )
    )


def _distribution(name: str, version: str | None, index: str | None, size: int | None) -> Distribution | None:
    if version is None:
        return None
    return checked(Distribution(name=name, version=version, index=index, size=size))


_ASKED = "the step asks for "


def _because(text: str) -> Because:
    """Take the sentence of ``Because.__str__`` apart again."""
    if text.startswith(_ASKED):
        return Because(requirement=text.removeprefix(_ASKED))
    who, separator, requirement = text.partition(" requires ")
    name, _, version = who.rpartition(" ")
    if not separator or not name:
        return Because(requirement=text)
    return Because(requirement=requirement, distribution=name, version=version)
