"""An environment as a file of another tool: pure, one module for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from envforge.model.export import Rendered, Subject

from . import conda_explicit, conda_lock, dockerfile, environment_yml, kernelspec, requirements, script, systemd

RENDERERS: Mapping[str, Callable[[Subject], Rendered]] = {
    "requirements": requirements.render,
    "script": script.render,
    "dockerfile": dockerfile.render,
    "environment-yml": environment_yml.render,
    "systemd": systemd.render,
    "kernelspec": kernelspec.render,
    "conda-explicit": conda_explicit.render,
    "conda-lock": conda_lock.render,
}
