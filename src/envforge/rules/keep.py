"""Guard ``keep``: once installed, a distribution stays the very same build."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Keep
from envforge.model.state import Distribution

from .because import arrival
from .context import Context, matches
from .diff import same_build
from .wording import called, cause, cause_evidence, guard_evidence, guard_text, reason


def kept_package_changed(context: Context) -> Iterator[Finding]:
    """One finding for every kept distribution that is another build now than when it came, or is gone.

    What counts is the build when it first appeared, or as a step left it that lists it under ``allow``.
    """
    for guard in context.profile.guards:
        if isinstance(guard, Keep):
            for name, kept in sorted(_kept(context, guard).items()):
                now = context.now.state.get(name)
                if now is None or not same_build(kept, now):
                    yield _finding(context, guard, kept, now)


def _kept(context: Context, guard: Keep) -> dict[str, Distribution]:
    """Canonical name -> the build that must stay."""
    kept: dict[str, Distribution] = {}
    for moment in context.moments:
        if moment.step is not None and moment.step.allow:
            kept = {name: build for name, build in kept.items() if not matches(name, moment.step.allow)}
        for name, distribution in moment.state.items():
            if name not in kept and matches(name, guard.names):
                kept[name] = distribution
    return kept


def _finding(context: Context, guard: Keep, kept: Distribution, now: Distribution | None) -> Finding:
    came = arrival(context, kept.name)
    evidence = guard_evidence(guard) | {
        "from": kept.version,
        "from_index": kept.index,
        "from_sha256": kept.sha256,
        "to": now.version if now is not None else None,
        "index": now.index if now is not None else None,
        "sha256": now.sha256 if now is not None else None,
    }
    if now is None:
        what = f"{called(kept)} was removed{f' by step `{came.step}`' if came.step else ''}"
    elif now.version == kept.version and kept.index and now.index and now.index != kept.index:
        what = f"{called(kept)} from `{kept.index}` was replaced by the same version from `{now.index}`"
    elif now.version == kept.version:
        what = f"{called(kept)} was replaced by another build of the same version"
    else:
        what = f"{called(kept)} was replaced by {now.version}{f' from `{now.index}`' if now.index else ''}"
    step = f"step `{came.step}`" if came.step else "the step that changes it"
    return Finding(
        id="kept-package-changed",
        severity=Severity.ERROR,
        subject=kept.name,
        message=what + cause(came) + reason(guard),
        evidence=evidence | cause_evidence(came),
        aspect=guard_text(guard),
        remedy=(f"if the change is meant, list `{kept.name}` under `allow` of {step}")
        + ("" if guard.constrain else "; if not, `constrain: true` on the guard makes the resolver keep it"),
    )
