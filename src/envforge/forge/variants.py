"""What, beside its source, goes into a build: other variables or other libraries make another wheel."""

from __future__ import annotations

import hashlib
import json

from envforge.model.profile import Step
from envforge.model.state import State
from envforge.system import environ


def variant(step: Step) -> str:
    """What of a step, beside the sdist, goes into a build; empty where nothing does."""
    given = environ.for_engine(step.environment, builds=True)
    return _digest([sorted(given.items()), sorted(step.build_constraints)]) if given or step.build_constraints else ""


def inside(step: Step, state: State) -> str:
    """The same for a build inside the environment: also all that is installed then, since any of it may be linked."""
    if not step.no_build_isolation:
        return ""
    installed = sorted((item.name, item.version, item.sha256) for item in state.values())
    return _digest([variant(step), installed])


def _digest(value: object) -> str:
    return "+" + hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
