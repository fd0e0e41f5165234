"""A file for `conda env create -f`: conda brings its packages, or the Python alone, and pip the rest."""

from __future__ import annotations

import yaml

from envforge.model import explicit, repodata
from envforge.model.export import Rendered, Subject, built
from envforge.model.losses import ACTIVATION, BUILT, CONDA, PIP, PYTHON, VARIABLES, losses
from envforge.model.state import Distribution, package_key, shown

from .stages import comment, in_order


def render(subject: Subject) -> Rendered:
    items = in_order(subject)
    used = {item.index for item in items if not built(item)}
    urls = [url for name, url in subject.indexes.items() if url is not None and name in used]
    pip = [f"--extra-index-url {url}" for url in urls]
    pip += [f"./{item.file}" if built(item) else f"{item.name}=={item.version}" for item in items]
    document: dict[str, object] = {"name": subject.environment}
    if subject.conda:
        document["channels"] = [*subject.channels.values(), "nodefaults"]
    document["dependencies"] = [*_conda(subject), *([{"pip": pip}] if pip else [])]
    if subject.profile.environment:
        document["variables"] = dict(subject.profile.variables)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    head = f"{subject.environment}, as envforge recorded it ({subject.snapshot})\nconda env create -f FILE"
    lost = losses(subject, {PYTHON, VARIABLES, CONDA, PIP, BUILT, ACTIVATION})
    if len(urls) > 1:
        lost = ("the order of the indexes: pip takes the best version of any", *lost)
    return Rendered(files={"environment.yml": comment(head) + text}, lost=lost)


def _conda(subject: Subject) -> list[str]:
    """The conda packages with version and build, and pip, which conda wants to be named."""
    if not subject.conda:
        return [f"python={subject.python}", "pip"]
    several = len(subject.channels) > 1
    found = [
        f"{_channel(subject, item)}::{_spec(item)}" if several else _spec(item)
        for item in explicit.in_order(subject.final)
    ]
    return found if package_key("pip") in subject.final else [*found, "pip"]


def _spec(item: Distribution) -> str:
    return f"{shown(item.name)}={item.version}={item.build}"


def _channel(subject: Subject, item: Distribution) -> str:
    place = subject.channels.get(item.index or "")
    return place if place is not None else str(repodata.said(item).get("channel", "")).rstrip("/")
