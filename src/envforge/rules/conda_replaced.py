"""pip put a distribution over the one that a conda package had brought."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.state import bringer, is_package, shown

from .because import arrival
from .context import Context
from .wording import WHOLE_DISTRIBUTIONS, cause, cause_evidence


def conda_replaced(context: Context) -> Iterator[Finding]:
    """One ``file-clobbered`` for every distribution that is not its conda package's any more; in a plan, too.

    A warning: the environment works, and holds what pip says. But conda-meta tells of files that are gone or another's,
    and the next conda transaction that touches the package puts its own back over pip's.
    """
    for name, key in sorted(replaced(context)):
        package, now = context.now.state[key], context.now.state.get(name)
        came = arrival(context, name)
        what = f"`{name}` {now.version} of pip" if now is not None else "nothing"
        yield Finding(
            id="file-clobbered",
            severity=Severity.WARNING,
            subject=name,
            aspect=key,
            message=f"the conda package `{shown(key)}` {package.version} brought `{name}`, and {what} is there in its "
            f"place: conda goes on listing its own{cause(came)}",
            evidence={
                "guard": WHOLE_DISTRIBUTIONS,
                "owners": [name, shown(key)],
                "package": package.version,
                "found": now.version if now is not None else None,
            }
            | cause_evidence(came),
            remedy=f"let one of the two bring `{name}`: leave it out of conda's packages, or hold pip to their version",
        )


def replaced(context: Context) -> set[tuple[str, str]]:
    """(distribution, key of the conda package) wherever the package is there and its distribution is another's.

    Where nothing is known of earlier moments, a package and a distribution of one name that bring the same paths are
    taken for that.
    """
    state = context.now.state
    found = set()
    for moment in context.moments:
        for name, item in moment.state.items():
            key = bringer(item)
            if key is not None and key in state and bringer(state.get(name)) is None:
                found.add((name, key))
    for clash in context.now.observation.clashes if context.now.observation is not None else ():
        for key in filter(is_package, clash.declared):
            if shown(key) in clash.declared and key in state:
                found.add((shown(key), key))
    return found
