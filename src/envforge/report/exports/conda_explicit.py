"""The conda packages of the end, as conda, mamba and rattler install them without solving."""

from __future__ import annotations

from envforge.model import explicit
from envforge.model.export import Rendered, Subject
from envforge.model.losses import ACTIVATION, BINDING, CONDA, HASHES, NO_DEPS, ORDER, PYTHON, losses


def render(subject: Subject) -> Rendered:
    head = (
        f"{subject.environment}, as envforge recorded it ({subject.snapshot}): the conda packages\n"
        f"conda create --name {subject.environment} --file FILE"
    )
    return Rendered(
        files={f"{subject.environment}.explicit.txt": explicit.render(subject.final, head)},
        lost=losses(subject, {PYTHON, HASHES, BINDING, NO_DEPS, CONDA, ORDER, ACTIVATION}),
    )
