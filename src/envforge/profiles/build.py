"""Checked forms to the frozen values of the model, and those back to plain YAML."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import yaml

from envforge.model.profile import (
    DEFAULT_INDEX,
    Action,
    Backend,
    Conda,
    Device,
    Forbid,
    Generate,
    Generator,
    Gpu,
    Guard,
    Hold,
    Hub,
    Ignore,
    Index,
    Keep,
    Model,
    Profile,
    Release,
    Smoke,
    SmokeKind,
    Step,
    Symbol,
)
from envforge.profiles.forms import (
    ACTIONS,
    SCHEMA,
    GenerateForm,
    GpuForm,
    GuardForm,
    KnownReleaseForm,
    ModelForm,
    ProfileForm,
    SmokeForm,
    StepForm,
)
from envforge.profiles.tree import IMPLICIT

# What a hub takes where no revision is named.
_REVISIONS = {Hub.HUGGINGFACE: "main", Hub.MODELSCOPE: "master", Hub.PATH: ""}
_LABEL = 60
_NO_WIDTH = 1 << 30
_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")


def build(form: ProfileForm, *, source: str) -> Profile:
    """The Profile of a form whose recipes and ``extends`` are expanded."""
    plain = Profile(
        name=form.name,
        source=source,
        text="",
        summary=form.summary,
        gpu=_gpu(form.gpu) if form.gpu is not None else None,
        backend=Backend(form.backend or Backend.VENV.value),
        conda=Conda(channels=tuple(form.conda.channels), packages=tuple(form.conda.packages))
        if form.conda is not None
        else Conda(),
        indexes=tuple(Index(name=index.name, url=index.url, packages=tuple(index.packages)) for index in form.indexes)
        or (Index(name=DEFAULT_INDEX),),
        environment=form.environment,
        steps=tuple(_step(step) for step in form.steps),
        guards=tuple(_guard(guard) for guard in form.guards),
        ignore=tuple(Ignore(id=entry.id, subject=entry.subject, because=entry.because) for entry in form.ignore),
        releases=tuple(_release(entry) for entry in form.releases),
        smoke=tuple(_smoke(smoke) for smoke in form.smoke),
        models=tuple(_model(model) for model in form.models),
        commands={name: tuple(words) for name, words in form.commands.items()},
        sealed=form.sealed,
    )
    if form.python is not None:
        plain = replace(plain, python=form.python)
    return replace(plain, text=dump(plain))


def _gpu(form: GpuForm) -> Gpu:
    return Gpu(
        compute_capability=tuple(form.compute_capability),
        driver=form.driver,
        memory_gib=form.memory_gib,
        count=form.count,
    )


def _step(form: StepForm) -> Step:
    action = next(Action(name) for name in ACTIONS if getattr(form, name) is not None)
    return Step(
        name=form.name or "",
        action=action,
        arguments=tuple(getattr(form, action.value)),
        indexes=tuple(form.indexes) if form.indexes is not None else None,
        upgrade=form.upgrade,
        no_deps=form.no_deps,
        no_build_isolation=tuple(form.no_build_isolation),
        constraints=tuple(form.constraints),
        build_constraints=tuple(form.build_constraints),
        allow=tuple(form.allow),
        environment=form.environment,
        recipe=form.from_,
    )


def _guard(form: GuardForm) -> Guard:
    because, reference = form.because, form.reference
    if form.keep is not None:
        return Keep(names=tuple(form.keep), constrain=form.constrain, because=because, reference=reference)
    if form.hold is not None:
        return Hold(requirement=form.hold, constrain=form.constrain, because=because, reference=reference)
    if form.forbid is not None:
        return Forbid(patterns=tuple(form.forbid), because=because, reference=reference)
    return Symbol(symbol=form.symbol or "", library=form.library or "", because=because, reference=reference)


def _release(form: KnownReleaseForm) -> Release:
    return Release(
        name=form.name,
        version=form.version,
        compute_capability=tuple(form.compute_capability),
        essential=tuple(form.essential),
        reference=form.reference,
    )


def _smoke(form: SmokeForm) -> Smoke:
    if form.import_ is not None:
        kind, arguments, label = SmokeKind.IMPORT, tuple(form.import_), f"import {', '.join(form.import_)}"
    elif form.python is not None:
        first = form.python.strip().splitlines()[0]
        kind, arguments, label = SmokeKind.PYTHON, (form.python,), first
    elif form.generate is not None:
        kind, arguments, label = SmokeKind.GENERATE, (), f"generate with {form.generate.engine}: {form.generate.model}"
    else:
        words = tuple(form.command or ())
        kind, arguments, label = SmokeKind.COMMAND, words, shlex.join(words)
    short = label if len(label) <= _LABEL else label[: _LABEL - 3] + "..."
    # Who generates wants to know of the card, unless the check says otherwise.
    device = form.device or (Device.CUDA.value if kind is SmokeKind.GENERATE else None)
    smoke = Smoke(
        kind=kind,
        arguments=arguments,
        name=form.name or short,
        device=Device(device) if device is not None else None,
        generate=_generate(form.generate) if form.generate is not None else None,
    )
    return smoke if form.timeout is None else replace(smoke, timeout=form.timeout)


def _generate(form: GenerateForm) -> Generate:
    generate = Generate(engine=Generator(form.engine), model=form.model, prompt=form.prompt, expect=form.expect)
    return generate if form.dtype is None else replace(generate, dtype=form.dtype)


def _model(form: ModelForm) -> Model:
    hub = Hub(form.from_)
    return Model(name=form.name, hub=hub, revision=form.revision or _REVISIONS[hub], path=form.path)


def dump(profile: Profile) -> str:
    """``profile`` as YAML without recipes and ``extends``: `loader.loads` reads an equal profile from it."""
    return yaml.dump(document(profile), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def flat(value: Any) -> str:
    """A mapping or list as YAML in one line."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NO_WIDTH, default_flow_style=True
    ).removesuffix("\n")


def document(profile: Profile) -> dict[str, Any]:
    """``profile`` as mappings, lists and scalars, as they stand in a file."""
    whole: dict[str, Any] = {"schema": SCHEMA, "name": profile.name, "summary": profile.summary}
    if profile.gpu is not None:
        whole["gpu"] = _without_empty(
            {
                "compute_capability": list(profile.gpu.compute_capability),
                "driver": profile.gpu.driver,
                "memory_gib": profile.gpu.memory_gib,
                "count": profile.gpu.count,
            }
        )
    whole |= {"python": profile.python, "backend": profile.backend.value}
    if profile.backend is Backend.CONDA:
        whole["conda"] = {"channels": list(profile.conda.channels), "packages": list(profile.conda.packages)}
    whole |= {
        "indexes": [
            _without_empty({"name": index.name, "url": index.url, "packages": list(index.packages)})
            for index in profile.indexes
        ],
        "environment": dict(profile.environment),
        "steps": [_step_document(step) for step in profile.steps],
        "guards": [_guard_document(guard) for guard in profile.guards],
        "ignore": [
            _without_empty({"id": entry.id, "subject": entry.subject, "because": entry.because})
            for entry in profile.ignore
        ],
        "smoke": [_smoke_document(smoke) for smoke in profile.smoke],
        "commands": {name: list(words) for name, words in profile.commands.items()},
    }
    if profile.models:
        whole["models"] = [_model_document(model) for model in profile.models]
    if profile.releases:
        whole["releases"] = [_release_document(release) for release in profile.releases]
    if profile.sealed:
        whole["sealed"] = True
    return whole


def _without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in entry.items() if value is not None and value is not False and value not in ([], {})
    }


def _step_document(step: Step) -> dict[str, Any]:
    options = {
        "upgrade": step.upgrade,
        "no_deps": step.no_deps,
        "no_build_isolation": list(step.no_build_isolation),
        "constraints": list(step.constraints),
        "build_constraints": list(step.build_constraints),
        "allow": list(step.allow),
        "environment": dict(step.environment),
        "from": step.recipe,
    }
    indexes = {} if step.indexes is None else {"indexes": list(step.indexes)}
    return {"name": step.name, step.action.value: list(step.arguments), **indexes, **_without_empty(options)}


def _guard_document(guard: Guard) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if isinstance(guard, Keep):
        entry = {"keep": list(guard.names), "constrain": guard.constrain}
    elif isinstance(guard, Hold):
        entry = {"hold": guard.requirement, "constrain": guard.constrain}
    elif isinstance(guard, Forbid):
        entry = {"forbid": list(guard.patterns)}
    elif isinstance(guard, Symbol):
        entry = {"symbol": guard.symbol, "library": guard.library}
    return _without_empty({**entry, "because": guard.because, "reference": guard.reference})


def _release_document(release: Release) -> dict[str, Any]:
    return _without_empty(
        {
            "name": release.name,
            "version": release.version,
            "compute_capability": list(release.compute_capability),
            "essential": list(release.essential),
            "reference": release.reference,
        }
    )


def _smoke_document(smoke: Smoke) -> dict[str, Any]:
    arguments: Any = smoke.arguments[0] if smoke.kind is SmokeKind.PYTHON else list(smoke.arguments)
    if smoke.generate is not None:
        asked = smoke.generate
        arguments = _without_empty(
            {
                "engine": asked.engine.value,
                "model": asked.model,
                "prompt": asked.prompt,
                "dtype": asked.dtype,
                "expect": asked.expect,
            }
        )
    device = {} if smoke.device is None else {"device": smoke.device.value}
    return {smoke.kind.value: arguments, **device, "name": smoke.name, "timeout": smoke.timeout}


def _model_document(model: Model) -> dict[str, Any]:
    where = {"revision": model.revision} if model.path is None else {"path": model.path}
    return {"name": model.name, "from": model.hub.value, **where}


class _Dumper(yaml.SafeDumper):
    """Quotes whatever YAML 1.1 or the core schema of 1.2 would take for something else than a string."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the name and shape that PyYAML calls
        return True


for _tag, _expression, _first in IMPLICIT:
    _Dumper.add_implicit_resolver(_tag, _expression, _first)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Source code as a block. What YAML 1.1 takes for a line's end would be lost in every style but the quoted."""
    style = '"' if _BREAKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
