"""A kernel of Jupyter that `envforge run` starts in the environment."""

from __future__ import annotations

import json

from envforge.model.export import Rendered, Subject

_KERNEL = "ipykernel"


def render(subject: Subject) -> Rendered:
    spec = {
        # By `run`, from the real path of the generation: through the symlink a kernel would mix two after an update.
        "argv": [
            *subject.program, "run", subject.environment, "--", "python", "-m", "ipykernel_launcher", "-f",
            "{connection_file}",
        ],
        "display_name": subject.environment,
        "language": "python",
        "env": dict(subject.profile.variables),
        "metadata": {"debugger": True},
    }  # fmt: skip
    lost = [f"the environment itself: `{subject.environment}` must be there on the host"]
    if _KERNEL not in subject.final:
        lost.append(f"`{_KERNEL}`, which is not installed: the kernel starts once a step installs it")
    return Rendered(files={"kernel.json": json.dumps(spec, indent=2) + "\n"}, lost=tuple(lost))
