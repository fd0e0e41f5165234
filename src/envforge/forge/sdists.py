"""Sdists become wheels of envforge's own store: once for the same file, target and all else that goes into a build."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from envforge.engines.artefacts import Artefact
from envforge.engines.built import BuiltWheel
from envforge.model.profile import Step
from envforge.model.state import Origin, State
from envforge.system import environ

from . import direct
from .bench import Bench


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


def sdist_wheel(bench: Bench, step: Step, artefact: Artefact, python: str | None = None) -> BuiltWheel:
    """Build an sdist's wheel into the store; inside the environment of ``python`` if given. Raises EnvforgeError."""
    source = Path(tempfile.mkdtemp(dir=bench.scratch)) / artefact.file
    source.symlink_to(bench.router.fetch(artefact))
    origin = Origin(kind="sdist", url=artefact.url, sha256=artefact.sha256)
    return direct.build(
        bench,
        step,
        artefact.name,
        str(source),
        origin=origin,
        source=bench.router.source(artefact.id, artefact.name),
        python=python,
    )
