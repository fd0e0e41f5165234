"""What an interrupted installation leaves in site-packages: ``~name``, a second dist-info of one distribution."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity

from .context import Context
from .wording import WHOLE_DISTRIBUTIONS


def leftover(context: Context) -> Iterator[Finding]:
    """One finding for every such path; nothing while there is no observation."""
    observation = context.now.observation
    for debris in observation.debris if observation is not None else ():
        if debris.kind == "leftover":
            yield Finding(
                id="leftover",
                severity=Severity.ERROR,
                subject=debris.name,
                aspect=debris.path,
                message=f"`{debris.path}` was left by an interrupted installation, which may have ended half way",
                evidence={"guard": WHOLE_DISTRIBUTIONS, "path": debris.path},
                remedy=f"remove `{debris.path}` and install the distribution that it is a rest of again",
            )
