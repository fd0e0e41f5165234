"""A dist-info folder without RECORD or METADATA."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity

from .context import Context
from .wording import WHOLE_DISTRIBUTIONS


def record_missing(context: Context) -> Iterator[Finding]:
    """One finding for every such folder; nothing while there is no observation."""
    observation = context.now.observation
    for debris in observation.debris if observation is not None else ():
        if debris.kind == "record-missing":
            missing = " and ".join(f"`{name}`" for name in debris.missing) or "its records"
            yield Finding(
                id="record-missing",
                severity=Severity.ERROR,
                subject=debris.name,
                aspect=debris.path,
                message=f"`{debris.path}` lacks {missing}: nobody can say what belongs to `{debris.name}`",
                evidence={"guard": WHOLE_DISTRIBUTIONS, "path": debris.path, "missing": list(debris.missing)},
                remedy=f"set `{debris.path}` aside and install `{debris.name}` again",
            )
