"""A plain shell script that does by hand what the steps did."""

from __future__ import annotations

import shlex

from envforge.model import explicit
from envforge.model.export import Rendered, Subject
from envforge.model.losses import (
    BINDING,
    BUILT,
    CONDA,
    HASHES,
    NO_DEPS,
    ORDER,
    PIP,
    PYTHON,
    RUNS,
    SMOKE,
    VARIABLES,
    losses,
)
from envforge.model.profile import Action

from . import smoke
from .stages import Stage, comment, groups, guards, stages, without_pip

_HEAD = """\
set -eu

env=${{1:-{name}}}
[ ! -e "$env" ] || {{ echo "$env is there already" >&2; exit 1; }}
"""
_VENV = """\
python=${{PYTHON:-python{minor}}}

"$python" -c 'import sys; sys.exit(sys.version_info[:2] != ({comma}))' || {{
    echo "$python is not Python {minor}; set PYTHON" >&2; exit 1
}}
"$python" -m venv "$env"
"""
_CONDA = """\
conda=${CONDA:-}
for each in micromamba mamba conda; do
    [ -n "$conda" ] || ! command -v "$each" > /dev/null || conda=$each
done
[ -n "$conda" ] || { echo "micromamba, mamba or conda is needed; set CONDA to the one to take" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list=$work/packages.txt
bring() { "$conda" "$1" --yes --prefix "$env" --file "$list"; }
drop() { "$conda" remove --yes --force --prefix "$env" "$@"; }

# the base
"""
_PIP = """\
env=$(cd "$env" && pwd)
# Wheels that no index has are expected beside this script.
cd "$(dirname "$0")"

if command -v uv > /dev/null; then
    install() { uv pip install --python "$env/bin/python" --no-deps --require-hashes -r "$env/step.txt"; }
    uninstall() { uv pip uninstall --python "$env/bin/python" "$@"; }
else
    install() { "$env/bin/python" -m pip install --no-deps --require-hashes -r "$env/step.txt"; }
    uninstall() { "$env/bin/python" -m pip uninstall --yes "$@"; }
fi
"""


def render(subject: Subject) -> Rendered:
    profile = subject.profile
    parts = [f"#!/bin/sh\n{comment(_about(subject))}", _HEAD.format(name=subject.environment)]
    if subject.conda:
        parts += [_CONDA, _linked(explicit.listed(explicit.in_order(subject.states[0])), "create"), _PIP]
    else:
        parts += [_VENV.format(minor=subject.minor, comma=subject.minor.replace(".", ", ")), _PIP]
        # What a venv of an older Python brings, and the environment did not hold.
        extra = [name for name in ("setuptools", "wheel") if name not in subject.states[0]]
        parts += [f"uninstall {' '.join(extra)}\n"] if extra else []
    parts.append("\n" + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in profile.variables.items()))
    parts += [_stage(subject, stage) for stage in stages(subject)]
    parts.append('\nrm -f "$env/step.txt"\n')
    if smoke.carried(profile):
        parts.append(f'\n# smoke checks\nPATH=$env/bin:$PATH\ncd "$(mktemp -d)"\n{smoke.checks(profile)}')
    carried = {PYTHON, HASHES, BINDING, ORDER, RUNS, VARIABLES, SMOKE, NO_DEPS, CONDA, PIP, BUILT}
    lost = (*without_pip(subject), *losses(subject, carried))
    return Rendered(files={f"{subject.environment}.sh": "".join(parts)}, lost=lost)


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
        prefix = "CONDA_PREFIX" if subject.conda else "VIRTUAL_ENV"
        return text + f'(cd "$env" && PATH="$env/bin:$PATH" {prefix}="$env" env {shlex.join(words)})\n'
    if stage.dropped:
        text += f"drop {' '.join(stage.dropped)}\n"
    if stage.linked:
        text += _linked(explicit.listed(stage.linked), "install")
    if stage.removed:
        text += f"uninstall {' '.join(stage.removed)}\n"
    for group in groups(subject, stage):
        text += f"cat > \"$env/step.txt\" <<'END'\n{group}END\ninstall\n"
    return text


def _linked(packages: str, verb: str) -> str:
    return f"cat > \"$list\" <<'END'\n{packages}END\nbring {verb}\n"
