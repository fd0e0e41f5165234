"""A file for `conda env create -f`: conda brings the Python, pip the rest."""

from __future__ import annotations

import yaml

from envforge.model.export import Rendered, Subject, built
from envforge.model.losses import PYTHON, VARIABLES, losses

from .stages import comment, in_order


def render(subject: Subject) -> Rendered:
    items = in_order(subject)
    used = {item.index for item in items if not built(item)}
    urls = [url for name, url in subject.indexes.items() if url is not None and name in used]
    pip = [f"--extra-index-url {url}" for url in urls]
    pip += [f"./{item.file}" if built(item) else f"{item.name}=={item.version}" for item in items]
    packages: list[object] = [f"python={subject.python}", "pip"]
    document: dict[str, object] = {
        "name": subject.environment,
        "dependencies": [*packages, *([{"pip": pip}] if pip else [])],
    }
    if subject.profile.environment:
        document["variables"] = dict(subject.profile.variables)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    head = f"{subject.environment}, as envforge recorded it ({subject.snapshot})\nconda env create -f FILE"
    lost = losses(subject, {PYTHON, VARIABLES})
    if len(urls) > 1:
        lost = ("the order of the indexes: pip takes the best version of any", *lost)
    return Rendered(files={"environment.yml": comment(head) + text}, lost=lost)
