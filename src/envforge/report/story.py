"""What opened on the way, through which requirement, and what healed it: read off the steps of a plan or a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envforge.model.finding import Finding
from envforge.model.plan import Change, StepPlan
from envforge.model.progress import StepDone
from envforge.model.views import StepRecord

from . import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A step as the story sees it: planned, done or remembered. ``heals``: keys, as far as they are known."""

    name: str
    changes: tuple[Change, ...]
    opens: tuple[Finding, ...]
    heals: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One finding, opened after step ``opened``, healed after step ``healed`` (None: never).

    ``cause`` is a sentence, None where nothing is known.
    """

    finding: Finding
    opened: str
    cause: str | None
    healed: str | None


def scenes(steps: Sequence[StepPlan | StepDone | StepRecord]) -> tuple[Scene, ...]:
    return tuple(_scene(step) for step in steps)


def _scene(step: StepPlan | StepDone | StepRecord) -> Scene:
    name = step.step.name if isinstance(step, StepPlan) else step.name
    known = step.heals if isinstance(step, StepRecord) else tuple(_key(finding) for finding in step.heals)
    return Scene(name=name, changes=step.changes, opens=step.opens, heals=known)


def _key(finding: Finding) -> tuple[object, ...]:
    """One subject can violate two guards or lack two requirements: those are two findings."""
    return (*finding.key, finding.evidence.get("guard"), finding.evidence.get("requirement"))


def chapters(steps: Sequence[Scene]) -> tuple[Chapter, ...]:
    """In the order in which they opened."""
    told = []
    for position, scene in enumerate(steps):
        for finding in scene.opens:
            key = _key(finding)
            healer = next(
                (
                    later.name
                    for later in steps[position + 1 :]
                    if any(key[: len(healed)] == healed for healed in later.heals)
                ),
                None,
            )
            told.append(
                Chapter(finding=finding, opened=scene.name, cause=words.cause(finding, scene.changes), healed=healer)
            )
    return tuple(told)
