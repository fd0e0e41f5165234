"""Where a constraint would have kept a guard from opening."""

from __future__ import annotations

from collections.abc import Iterable

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Guard

from .wording import guard_text


def constrain_would_help(findings: Iterable[Finding], helped: Iterable[Guard]) -> tuple[str, ...]:
    """A sentence for every guard of ``helped``: one that opened, and would not have, had the resolver been given it.

    ``findings``: of all steps; the first that names the guard says in which step it opened.
    """
    first: dict[str, Finding] = {}
    for finding in findings:
        guard = finding.evidence.get("guard")
        if isinstance(guard, str) and finding.severity is Severity.ERROR:
            first.setdefault(guard, finding)
    notes = []
    for guard in sorted(helped, key=guard_text):
        opening = first.get(guard_text(guard))
        if opening is not None:
            where = f"in step `{opening.step}`" if opening.step else "before the first step"
            notes.append(
                f"the guard `{guard_text(guard)}` opens {where}: with `constrain: true` it is given to the resolver "
                "at every step, so that this never happens"
            )
    return tuple(dict.fromkeys(notes))
