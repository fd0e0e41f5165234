"""An installed distribution's requirement is absent or out of range."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.state import bringer

from .because import arrival
from .context import Context, requested
from .requirements import Edge, accepts, edges
from .wording import CONSISTENT_METADATA, cause, cause_evidence


def requirement_unmet(context: Context) -> Iterator[Finding]:
    """One finding for every owner and every distribution that it requires in vain; the subject is the owner."""
    seen: set[tuple[str, str]] = set()
    state = context.now.state
    for edge in edges(state, requested(context), context.markers):
        found = state.get(edge.wanted.name)
        key = (edge.owner, edge.wanted.name)
        if key in seen or (found is not None and accepts(edge.wanted.bounds, found.version)):
            continue
        seen.add(key)
        by_conda = bringer(state.get(edge.owner)) is not None
        yield _finding(context, edge, found.version if found is not None else None, by_conda=by_conda)


def _finding(context: Context, edge: Edge, found: str | None, *, by_conda: bool) -> Finding:
    owner = f"`{edge.owner}{f'[{edge.extra}]' if edge.extra else ''}` {edge.version}"
    evidence = {
        "guard": CONSISTENT_METADATA,
        "owner": edge.owner,
        "version": edge.version,
        "extra": edge.extra,
        "requirement": edge.wanted.text,
        "required": edge.wanted.name,
        "found": found,
    }
    if found is None:
        message = f"{owner} requires `{edge.wanted.text}`, which is not installed"
        remedy = f"add `{edge.wanted.text}` to a `backfill` step"
    else:
        came = arrival(context, edge.wanted.name)
        message = f"{owner} requires `{edge.wanted.text}`, but {found} is installed{cause(came)}"
        remedy = f"install a `{edge.owner}` that accepts `{edge.wanted.name}` {found}, or hold `{edge.wanted.text}`"
        evidence |= cause_evidence(came)
    return Finding(
        id="requirement-unmet",
        # conda solves by the package's own list, and other names may stand in for what METADATA asks for.
        severity=Severity.WARNING if by_conda else Severity.ERROR,
        subject=edge.owner,
        aspect=edge.wanted.name,
        message=message,
        evidence=evidence,
        remedy=remedy,
    )
