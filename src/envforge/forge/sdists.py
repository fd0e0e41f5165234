"""Sdists become wheels of envforge's own store: once for the same file, target and all else that goes into a build."""

from __future__ import annotations

import tempfile
from pathlib import Path

from envforge.engines.artefacts import Artefact
from envforge.engines.built import BuiltWheel
from envforge.model.profile import Step
from envforge.model.state import Origin

from . import direct
from .bench import Bench


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
