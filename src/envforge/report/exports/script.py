"""A plain shell script that does by hand what the steps did."""

from __future__ import annotations

import shlex

from envforge.model.export import Rendered, Subject
from envforge.model.losses import BINDING, HASHES, NO_DEPS, ORDER, PYTHON, RUNS, SMOKE, VARIABLES, losses
from envforge.model.profile import Action

from . import smoke
from .stages import Stage, comment, groups, guards, stages

_HEAD = """\
set -eu

env=${{1:-{name}}}
python=${{PYTHON:-python{minor}}}

[ ! -e "$env" ] || {{ echo "$env is there already" >&2; exit 1; }}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != ({comma}))' || {{
    echo "$python is not Python {minor}; set PYTHON" >&2; exit 1
}}
"$python" -m venv "$env"
env=$(cd "$env" && pwd)
# Wheels that no index has are expected beside this script.
cd "$(dirname "$0")"

if command -v uv > /dev/null; then
    install() {{ uv pip install --python "$env/bin/python" --no-deps --require-hashes -r "$env/step.txt"; }}
    uninstall() {{ uv pip uninstall --python "$env/bin/python" "$@"; }}
else
    install() {{ "$env/bin/python" -m pip install --no-deps --require-hashes -r "$env/step.txt"; }}
    uninstall() {{ "$env/bin/python" -m pip uninstall --yes "$@"; }}
fi
"""


def render(subject: Subject) -> Rendered:
    profile = subject.profile
    parts = [f"#!/bin/sh\n{comment(_about(subject))}"]
    parts.append(_HEAD.format(name=subject.environment, minor=subject.minor, comma=subject.minor.replace(".", ", ")))
    # What a venv of an older Python brings, and the environment did not hold.
    extra = [name for name in ("setuptools", "wheel") if name not in subject.states[0]]
    parts += [f"uninstall {' '.join(extra)}\n"] if extra else []
    parts.append("\n" + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in profile.variables.items()))
    parts += [_stage(subject, stage) for stage in stages(subject)]
    parts.append('\nrm -f "$env/step.txt"\n')
    if profile.smoke:
        parts.append(f'\n# smoke checks\nPATH=$env/bin:$PATH\ncd "$(mktemp -d)"\n{smoke.checks(profile)}')
    carried = {PYTHON, HASHES, BINDING, ORDER, RUNS, VARIABLES, SMOKE, NO_DEPS}
    return Rendered(files={f"{subject.environment}.sh": "".join(parts)}, lost=losses(subject, carried))


def _about(subject: Subject) -> str:
    lines = [
        f"{subject.environment}: {subject.profile.summary}".rstrip(": "),
        f"The steps of {subject.snapshot} by hand, with exactly its files: sh FILE [FOLDER]",
    ]
    watched = guards(subject.profile)
    if watched:
        lines += ["", "What must hold, and nothing here watches:", *(f"- {each}" for each in watched)]
    return "\n".join(lines)


def _stage(subject: Subject, stage: Stage) -> str:
    step = stage.step
    text = f"\n# step {step.name}: {step.action.value} {' '.join(' '.join(step.arguments).split())}".rstrip() + "\n"
    if step.action is Action.RUN:
        words = [*(f"{name}={value}" for name, value in step.environment.items()), *step.arguments]
        return text + f'(cd "$env" && PATH="$env/bin:$PATH" VIRTUAL_ENV="$env" env {shlex.join(words)})\n'
    if stage.removed:
        text += f"uninstall {' '.join(stage.removed)}\n"
    for group in groups(subject, stage):
        text += f"cat > \"$env/step.txt\" <<'END'\n{group}END\ninstall\n"
    return text
