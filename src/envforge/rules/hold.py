"""Guard ``hold``: what is installed satisfies a requirement; what is absent does not violate it."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Hold

from .because import arrival
from .context import Context
from .requirements import accepts, applies, parse
from .wording import called, cause, cause_evidence, guard_evidence, guard_text, reason


def hold_violated(context: Context) -> Iterator[Finding]:
    """One finding for every ``hold`` whose distribution is installed in a version that it excludes.

    A pre-release counts by its number, a local version by its public part; extras say nothing here.
    """
    for guard in context.profile.guards:
        if not isinstance(guard, Hold):
            continue
        wanted = parse(guard.requirement)
        if wanted is None or not applies(wanted, context.markers):
            continue
        now = context.now.state.get(wanted.name)
        if now is None or accepts(wanted.bounds, now.version):
            continue
        came = arrival(context, now.name)
        yield Finding(
            id="hold-violated",
            severity=Severity.ERROR,
            subject=now.name,
            message=f"{called(now)} violates `{wanted.text}`{reason(guard)}{cause(came)}",
            aspect=guard_text(guard),
            evidence=guard_evidence(guard) | {"found": now.version} | cause_evidence(came),
            remedy=f"pin `{wanted.text}` in a later step"
            + ("" if guard.constrain else ", or set `constrain: true` on the guard so that it never happens"),
        )
