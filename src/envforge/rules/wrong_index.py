"""A distribution came from an index that the profile does not allow for it."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.state import Distribution, is_package

from .because import arrival
from .context import Context, index_names_allowed, with_substitutes
from .wording import called


def package_wrong_index(context: Context) -> Iterator[Finding]:
    """One finding for every such distribution. What came from no index (Git, a path, with the Python) is no concern.

    A step's own ``indexes`` narrow what it may take from. Where a substitute is configured, it is allowed besides.
    """
    narrowed = {
        moment.step.name: with_substitutes(moment.step.indexes, context.substitutes)
        for moment in context.moments
        if moment.step is not None and moment.step.indexes is not None
    }
    for name, now in sorted(context.now.state.items()):
        if now.index is None or is_package(name) or (now.origin is not None and now.origin.kind != "sdist"):
            continue
        allowed = index_names_allowed(context.profile, name, context.substitutes)
        if now.index in allowed and not narrowed:
            continue
        step = arrival(context, name).step if narrowed else None
        if step in narrowed:
            allowed &= narrowed[step]
        if now.index not in allowed:
            yield _finding(now, allowed)


def _finding(now: Distribution, allowed: frozenset[str]) -> Finding:
    names = ", ".join(f"`{name}`" for name in sorted(allowed)) or "none"
    return Finding(
        id="package-wrong-index",
        severity=Severity.ERROR,
        subject=now.name,
        message=f"{called(now)} came from `{now.index}`, which the profile does not allow for it (allowed: {names})",
        evidence={"index": now.index, "allowed": sorted(allowed), "version": now.version, "sha256": now.sha256},
        remedy=f"reinstall `{now.name}` from an allowed index, or list it under `packages` of `{now.index}`",
    )
