"""Guard ``forbid``: no installed distribution has one of these names."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Forbid
from envforge.model.state import shown

from .because import arrival
from .context import Context
from .wording import called, cause, cause_evidence, guard_evidence, guard_text, reason


def package_forbidden(context: Context) -> Iterator[Finding]:
    """One finding for every guard and every installed distribution that it forbids."""
    for guard in context.profile.guards:
        if not isinstance(guard, Forbid):
            continue
        for name, now in sorted(context.now.state.items()):
            pattern = next((pattern for pattern in guard.patterns if fnmatchcase(shown(name), pattern)), None)
            if pattern is None:
                continue
            came = arrival(context, name)
            yield Finding(
                id="package-forbidden",
                severity=Severity.ERROR,
                subject=shown(name),
                message=f"{called(now)} is installed, and `{pattern}` is forbidden{reason(guard)}{cause(came)}",
                aspect=guard_text(guard),
                evidence=guard_evidence(guard) | {"pattern": pattern, "found": now.version} | cause_evidence(came),
                remedy=f"uninstall `{shown(name)}` in a later step, or leave out what requires it",
            )
