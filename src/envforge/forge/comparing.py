"""What was found beside what was foreseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envforge.model import wire
from envforge.model.plan import StepPlan
from envforge.model.progress import StepDone
from envforge.model.state import Distribution, State


def enriched(found: State, expected: State) -> dict[str, Distribution]:
    """What was found, with what only the plan knows: the file, its index, its hash, whether it was asked for."""
    known_better = {}
    for name, item in found.items():
        known = expected.get(name)
        if known is None or known.version != item.version:
            known_better[name] = replace(item, requested=False)
            continue
        known_better[name] = replace(
            item, build=known.build, index=known.index, file=known.file, sha256=known.sha256, size=known.size,
            url=known.url, origin=known.origin, requested=known.requested,
        )  # fmt: skip
    return known_better


def compare(predicted: StepPlan, before: State, after: State) -> tuple[str, ...]:
    """Where reality differs from the plan: by version for what changed, by contents for what should not have."""
    said = []
    for name in sorted({*predicted.state, *after}):
        wanted, found = predicted.state.get(name), after.get(name)
        if wanted is None and found is not None:
            said.append(f"`{name}` {found.version} is there though the plan does not have it")
        elif found is None and wanted is not None:
            said.append(f"`{name}` {wanted.version} is not there though the plan has it")
        elif wanted is not None and found is not None and wanted.version != found.version:
            said.append(f"`{name}` is {found.version}, the plan says {wanted.version}")
    touched = {change.name for change in predicted.changes}
    for name, item in after.items():
        earlier = before.get(name)
        if earlier is not None and name not in touched and earlier.contents != item.contents:
            said.append(f"the contents of `{name}` changed though the plan leaves it alone")
    return tuple(said)


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
