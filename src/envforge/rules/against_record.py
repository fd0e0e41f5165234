"""Files that are not what the RECORD of their own distribution says: the second witness, beside or for want of a
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envforge.model.finding import Finding, Severity
from envforge.model.state import State, is_package, shown

from .wording import WHOLE_DISTRIBUTIONS, called

_SHOWN = 10  # paths that the evidence names; the count tells of the rest
_WORDS = {
    "file-missing": ("is gone", "are gone"),
    "file-modified": ("is not what {witness} says", "are not what {witness} says"),
    "unreadable": ("is not readable by this user", "are not readable by this user"),
}
_REMEDIES = {
    "file-missing": "install it again with the tool that installed it, or uninstall it",
    "file-modified": "if the change is not meant, install it again with the tool that installed it",
    "unreadable": "look as the owner of the environment, or mend the permissions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Canonical name -> paths (relative to the prefix, sorted) that are gone, have other bytes, cannot be read."""

    missing: Mapping[str, tuple[str, ...]]
    modified: Mapping[str, tuple[str, ...]]
    unreadable: Mapping[str, tuple[str, ...]]


def findings(state: State, found: Disagreement, *, modified: Severity = Severity.ERROR) -> tuple[Finding, ...]:
    """One for each distribution and kind of disagreement. A distribution that lacks files is partial: an error.

    ``modified``: how bad other bytes are, which somebody may have meant.
    """
    return (
        *_told(state, "file-missing", Severity.ERROR, found.missing),
        *_told(state, "file-modified", modified, found.modified),
        *_told(state, "unreadable", Severity.WARNING, found.unreadable),
    )


def _told(state: State, kind: str, severity: Severity, disagreeing: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for name, paths in sorted(disagreeing.items()):
        evidence: dict[str, Any] = {"count": len(paths), "paths": list(paths[:_SHOWN])}
        if kind == "file-missing":
            evidence["guard"] = WHOLE_DISTRIBUTIONS
        one, many = (word.format(witness="conda-meta" if is_package(name) else "its RECORD") for word in _WORDS[kind])
        yield Finding(
            id="file-modified" if kind == "unreadable" else kind,
            severity=severity,
            subject=shown(name),
            aspect=kind if kind == "unreadable" else None,
            message=f"`{paths[0]}` of {called(state[name])} {one}"
            if len(paths) == 1
            else f"{len(paths)} files of {called(state[name])} {many} (`{paths[0]}` and others)",
            evidence=evidence,
            remedy=_REMEDIES[kind],
        )
