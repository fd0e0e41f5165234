"""What was found beside what was foreseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envforge.model import wire
from envforge.model.finding import Finding, Severity
from envforge.model.plan import StepPlan
from envforge.model.progress import StepDone
from envforge.model.state import Distribution, State, bringer, shown
from envforge.rules.diff import changes


def enriched(found: State, expected: State) -> dict[str, Distribution]:
    """What was found, with what only the plan knows: the file, its index, its hash, whether it was asked for."""
    known_better = {}
    for name, item in found.items():
        known = expected.get(name)
        other = known is None or known.version != item.version
        # By another way than the plan's, something else may now lie there under the same version.
        if known is None or other or (known.contents and item.contents and known.contents != item.contents):
            known_better[name] = replace(item, requested=False)
            continue
        known_better[name] = replace(
            item, build=known.build, index=known.index, file=known.file, sha256=known.sha256, size=known.size,
            url=known.url, origin=known.origin, requested=known.requested, repodata=known.repodata,
        )  # fmt: skip
    return known_better


def compare(predicted: StepPlan, before: State, after: State) -> tuple[Finding, ...]:
    """Where reality differs from the plan: by version for what changed, by contents for what should not have.

    That the files are the ones of the plan the engine has made sure of: it was given their sha256.
    """
    said = []
    touched = {change.name for change in predicted.changes}
    # What a conda package brings changes with it, and is not told beside it.
    touched |= {name for name, item in predicted.state.items() if bringer(item) in touched}
    for name in sorted({*predicted.state, *after}):
        wanted, found, earlier = predicted.state.get(name), after.get(name), before.get(name)
        if wanted is None and found is not None:
            said.append(("package-extra", name, f"{found.version} is there though the plan does not have it"))
        elif found is None and wanted is not None:
            said.append(("package-missing", name, f"{wanted.version} is not there though the plan has it"))
        elif wanted is not None and found is not None and wanted.version != found.version:
            said.append(("package-changed", name, f"is {found.version}, the plan says {wanted.version}"))
        elif earlier is not None and found is not None and name not in touched and earlier.contents != found.contents:
            said.append(("package-changed", name, "has other contents though the plan leaves it alone"))
    return tuple(
        Finding(
            id=identity,
            severity=Severity.ERROR,
            subject=shown(name),
            step=predicted.step.name,
            message=f"`{shown(name)}` {text}",
            remedy="see the step's log for what the engine did; the environment in use is as it was",
        )
        for identity, name, text in said
    )


def foreign(by: str, before: State, after: State) -> tuple[Finding, ...]:
    """Findings for every distribution that something which should change nothing changed; ``by`` names it."""
    found = []
    for change in changes(before, after):
        old, new = change.before, change.after
        if old is None and new is not None:
            identity, what = "package-extra", f"`{change.label}` {new.version} was installed"
        elif new is None and old is not None:
            identity, what = "package-missing", f"`{change.label}` {old.version} was removed"
        else:
            identity, what = "package-changed", f"`{change.label}` was replaced"
        found.append(
            Finding(
                id=identity,
                severity=Severity.ERROR,
                subject=change.label,
                step=by,
                message=f"{what} by {by}",
                remedy="a check proves what is there; what changes it belongs into a step",
            )
        )
    return tuple(found)


def journalled(position: int, done: StepDone) -> dict[str, Any]:
    return {
        "step": position,
        "name": done.name,
        "action": done.action,
        "changes": [wire.change(change) for change in done.changes],
        "opens": [wire.finding(finding) for finding in done.opens],
        "heals": wire.heals(done.heals),
        "seconds": round(done.seconds, 3),
        "differs": list(done.differs),
    }
