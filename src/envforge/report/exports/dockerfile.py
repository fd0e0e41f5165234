"""A Dockerfile: a Python, or conda packages, the steps with exactly the files of the lock, and the smoke checks as its
health.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

from packaging.specifiers import SpecifierSet

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
from envforge.model.profile import Action, Gpu, Profile
from envforge.model.state import Distribution, State
from envforge.model.views import needs

from . import smoke
from .stages import Stage, comment, groups, guards, stages, without_pip

_CAPABILITIES = (
    "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3",
    "11.0", "12.0", "12.1",
)  # fmt: skip
_BEYOND = "99.0"
_ARCHITECTURES = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
_SUBDIRS = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
_TORCH_LIST = "TORCH_CUDA_ARCH_LIST"


# Its program alone is taken from there: it needs no Python, and installs what conda lists.
_MICROMAMBA = "mambaorg/micromamba:latest"
_ROOT = "/var/cache/micromamba"


def render(subject: Subject) -> Rendered:
    profile, root = subject.profile, f"/opt/{subject.environment}"
    prefix = {"CONDA_PREFIX" if subject.conda else "VIRTUAL_ENV": root}
    variables = {**_gpu_variables(profile), **profile.variables, **prefix}
    parts = [
        f"# syntax=docker/dockerfile:1\n{comment(_about(subject))}",
        _base(subject),
        "".join(f"LABEL {name}={_quoted(value)}\n" for name, value in _labels(subject).items()),
        "".join(f"ENV {name}={_quoted(value)}\n" for name, value in variables.items())
        + f'ENV PATH="{root}/bin:${{PATH}}"\n',
        _linked(explicit.in_order(subject.states[0]), "create", "base.txt", root)
        if subject.conda
        else f"RUN python -m venv {root}\n{_without(subject)}",
    ]
    parts += [_stage(subject, stage, position, root) for position, stage in enumerate(stages(subject), 1)]
    if smoke.carried(profile):
        place = f"{_beside(subject)}/smoke.sh"
        parts.append(
            f"# smoke checks\n{_copied(smoke.script(profile), place)}"
            f"HEALTHCHECK --interval=10m --timeout={smoke.seconds(profile)}s --start-period=2m CMD "
            f"{json.dumps(['sh', place])}\n"
        )
    carried = {PYTHON, HASHES, BINDING, ORDER, RUNS, VARIABLES, SMOKE, NO_DEPS, CONDA, PIP, BUILT}
    lost = ["the driver: it is the host's"] if profile.gpu is not None else []
    broken = [name for name, value in variables.items() if "\n" in value]
    lost += [f"the line breaks in {', '.join(f'`{name}`' for name in broken)}"] if broken else []
    lost.append("what the base image and its packages are: only their name is given")
    lost += [*without_pip(subject), *losses(subject, carried)]
    return Rendered(files={"Dockerfile": "\n".join(filter(None, parts))}, lost=tuple(lost))


def _about(subject: Subject) -> str:
    profile = subject.profile
    lines = [
        f"{subject.environment}: {profile.summary}".rstrip(": "),
        f"As envforge recorded it ({subject.snapshot}): docker build -t {subject.environment.lower()} -f FILE .",
    ]
    if profile.gpu is not None:
        lines += [f"For a {needs(profile.gpu)}; the driver is the host's: docker run --gpus all ..."]
    lines += [f"{name}: docker run ... {shlex.join(words)}" for name, words in profile.commands.items()]
    watched = guards(profile)
    if watched:
        lines += ["", "What must hold, and nothing here watches:", *(f"- {each}" for each in watched)]
    return "\n".join(lines)


def _base(subject: Subject) -> str:
    """The images: any base with certificates would do where conda brings the Python."""
    platform = _platform(subject.final)
    chosen = f"FROM {f'--platform={platform} ' if platform else ''}"
    base = f"ARG BASE=python:{subject.python}-slim\n"
    if not subject.conda:
        return f"{base}{chosen}${{BASE}}\n"
    program = "/bin/micromamba"
    return (
        f"{base}ARG MICROMAMBA={_MICROMAMBA}\n{chosen}${{MICROMAMBA}} AS micromamba\n{chosen}${{BASE}}\n"
        f"COPY --from=micromamba {json.dumps([program, program])}\n"
    )


def _platform(state: State) -> str | None:
    """Where the files fit, as far as their names, or conda's subdir, bind them to one architecture."""
    found = {word for word in _ARCHITECTURES for item in state.values() if (item.file or "").endswith(f"{word}.whl")}
    found |= {_SUBDIRS[each] for each in [explicit.platform(state)] if each in _SUBDIRS}
    return _ARCHITECTURES[found.pop()] if len(found) == 1 else None


def _labels(subject: Subject) -> dict[str, str]:
    gpu = subject.profile.gpu
    found = {"envforge.profile": subject.profile.name, "envforge.snapshot": subject.snapshot}
    cuda = _cuda(subject.final)
    if cuda:
        found["envforge.cuda"] = cuda
    if gpu is not None and gpu.driver:
        found["envforge.driver"] = gpu.driver
    if gpu is not None and gpu.compute_capability:
        found["envforge.compute-capability"] = " or ".join(gpu.compute_capability)
    return found


def _cuda(state: State) -> str | None:
    """The CUDA that the builds are for: ``12.6`` of ``2.7.1+cu126``, else of the runtime among them."""
    for item in state.values():
        local = re.search(r"\+cu(\d+)(\d)$", item.version)
        if local:
            return f"{local[1]}.{local[2]}"
    runtime = next((state[name] for name in state if re.fullmatch(r"nvidia-cuda-runtime(-cu\d+)?", name)), None)
    return ".".join(runtime.version.split(".")[:2]) if runtime is not None else None


def _gpu_variables(profile: Profile) -> dict[str, str]:
    if profile.gpu is None:
        return {}
    found = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    capabilities = _arch_list(profile.gpu)
    return {_TORCH_LIST: capabilities, **found} if capabilities else found


def _arch_list(gpu: Gpu) -> str:
    """``7.0`` or ``8.0;8.6+PTX``: every known compute capability that fits, and code for those to come where open."""
    fitting = [each for each in _CAPABILITIES if _fits(each, gpu)]
    return ";".join(fitting) + ("+PTX" if fitting and _fits(_BEYOND, gpu) else "")


def _fits(capability: str, gpu: Gpu) -> bool:
    return any(SpecifierSet(wanted).contains(capability) for wanted in gpu.compute_capability)


def _without(subject: Subject) -> str:
    """What a venv of an older Python brings, and the environment did not hold."""
    extra = [name for name in ("setuptools", "wheel") if name not in subject.states[0]]
    return f"RUN python -m pip uninstall --yes {' '.join(extra)}\n" if extra else ""


def _stage(subject: Subject, stage: Stage, position: int, root: str) -> str:
    step = stage.step
    text = f"# step {step.name}: {step.action.value}\n"
    if step.action is Action.RUN:
        words = ["env", *(f"{name}={value}" for name, value in step.environment.items()), *step.arguments]
        return text + f"RUN {json.dumps(words)}\n"
    beside = _beside(subject)
    if stage.dropped:
        text += f"RUN micromamba remove --yes --force --prefix {root} {' '.join(stage.dropped)}\n"
    if stage.linked:
        text += _linked(stage.linked, "install", f"{position}.txt", root)
    if stage.removed:
        text += f"RUN python -m pip uninstall --yes {' '.join(stage.removed)}\n"
    text += "".join(f"COPY {json.dumps([item.file, f'{beside}/wheels/'])}\n" for item in stage.installed.get(None, ()))
    for number, group in enumerate(groups(subject, stage, f"{beside}/wheels"), 1):
        place = f"{beside}/steps/{position}-{number}.txt"
        text += _copied(group, place)
        text += f"RUN python -m pip install --no-cache-dir --no-deps --require-hashes -r {place}\n"
    return text


def _beside(subject: Subject) -> str:
    """Where files of the build lie. No conda makes an environment where there is a folder already."""
    return f"/opt/{subject.environment}{'-steps' if subject.conda else ''}"


def _linked(items: Iterable[Distribution], verb: str, name: str, root: str) -> str:
    """Install conda packages; what is downloaded for that stays out of the image."""
    place = f"{root}-steps/conda/{name}"
    words = f"micromamba {verb} --yes --root-prefix {_ROOT} --prefix {root} --file {place}"
    return _copied(explicit.listed(items), place) + f"RUN --mount=type=cache,target={_ROOT} {words}\n"


def _copied(text: str, place: str) -> str:
    """An instruction that writes ``text``; the word that ends it is none of its lines."""
    end = "END"
    while end in text.splitlines():
        end += "_"
    return f"COPY <<'{end}' {place}\n{text}{end}\n"


def _quoted(text: str) -> str:
    """A value in double quotes; no line of a Dockerfile holds a line break."""
    return '"' + re.sub(r'(["\\$])', r"\\\1", text.replace("\n", " ")) + '"'
