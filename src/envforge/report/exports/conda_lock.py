"""A lock of conda-lock, version 1, made and checked by conda-lock's own types."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envforge.model import explicit, repodata
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import Rendered, Subject, built, installable
from envforge.model.losses import ACTIVATION, BINDING, CONDA, HASHES, NO_DEPS, PIP, PYTHON, losses
from envforge.model.state import Distribution, shown

from .stages import comment

_CARRIED = {PYTHON, HASHES, BINDING, NO_DEPS, CONDA, PIP, ACTIVATION}


def render(subject: Subject) -> Rendered:
    """Raises UsageError ``extra-missing`` where conda-lock is not installed, EnvforgeError ``not-restorable``."""
    try:
        with warnings.catch_warnings():
            # What it brings along is deprecated, which is its own affair. It takes more than a second to be imported.
            warnings.simplefilter("ignore")
            from conda_lock.lockfile.v1 import models  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "extra-missing",
            "`conda-lock` is written by the library conda-lock, which is not installed",
            hint="it is the extra `envforge[conda-lock]`: `pip install 'conda-lock>=4,<5'`, with the pip of the Python "
            "that runs envforge",
        ) from error
    place = explicit.platform(subject.final) or repodata.NOARCH
    pip = [item for item in subject.final.values() if installable(item) and not built(item)]
    entries = [_conda(item, place) for item in explicit.in_order(subject.final)]
    entries += [_pip(item, place, subject) for item in sorted(pip, key=lambda item: item.name)]
    lock = models.Lockfile.model_validate(
        {
            "version": 1,
            "metadata": {
                # Of what conda-lock would have solved; here it is the profile that was.
                "content_hash": {place: hashlib.sha256(subject.profile.text.encode()).hexdigest()},
                "channels": [{"url": each, "used_env_vars": []} for each in subject.channels.values()],
                "platforms": [place],
                "sources": [],
            },
            "package": entries,
        }
    )
    head = f"{subject.environment}, as envforge recorded it ({subject.snapshot})\n"
    head += f"conda-lock install --name {subject.environment} FILE"
    text = yaml.safe_dump(lock.dict_for_output(), sort_keys=False, allow_unicode=True, width=1000)
    return Rendered(files={"conda-lock.yml": comment(head) + text}, lost=losses(subject, _CARRIED))


def _conda(item: Distribution, place: str) -> dict[str, Any]:
    said = repodata.said(item)
    if not said.get("md5"):
        raise EnvforgeError(
            "not-restorable",
            f"`{shown(item.name)}` {item.version} cannot stand in a lock of conda-lock: its channel states no MD5",
            hint="`conda-explicit` does without",
        )
    digests = {"md5": said["md5"], **({"sha256": item.sha256} if item.sha256 else {})}
    needs = dict(repodata.split(spec) for spec in repodata.depends(item))
    return _entry(item, "conda", place, digests, needs)


def _pip(item: Distribution, place: str, subject: Subject) -> dict[str, Any]:
    markers = {"python_version": subject.minor, "python_full_version": subject.python, "extra": ""}
    needs = {
        str(name): str(wanted.specifier) or "*"
        for wanted in _requirements(item.requires)
        if (name := canonicalize_name(wanted.name)) in subject.final
        and (wanted.marker is None or wanted.marker.evaluate(markers))
    }
    return _entry(item, "pip", place, {"sha256": item.sha256}, needs)


def _requirements(lines: Iterable[str]) -> Iterable[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue


def _entry(
    item: Distribution, manager: str, place: str, digests: Mapping[str, Any], needs: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "name": shown(item.name),
        "version": item.version,
        "manager": manager,
        "platform": place,
        "dependencies": dict(sorted(needs.items())),
        "url": item.url,
        "hash": digests,
        "category": "main",
        "optional": False,
    }
