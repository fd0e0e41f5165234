"""One file that `pip install --no-deps --require-hashes -r` rebuilds from."""

from __future__ import annotations

from envforge.model.export import Rendered, Subject, built
from envforge.model.losses import ACTIVATION, BUILT, HASHES, NO_DEPS, PIP, losses

from .stages import comment, in_order, line


def render(subject: Subject) -> Rendered:
    items = in_order(subject)
    extra, default = _indexes(subject, {item.index for item in items if item.index is not None and not built(item)})
    lines = [f"--index-url {default}"] if default is not None else []
    lines += [f"--extra-index-url {url}" for url in extra]
    several = " --index-strategy unsafe-best-match" if extra else ""
    head = (
        f"{subject.environment}, as envforge recorded it ({subject.snapshot}), for Python {subject.minor}\n"
        "pip install --no-deps --require-hashes -r FILE\n"
        f"uv pip install --no-deps --require-hashes{several} -r FILE"
    )
    body = "\n".join([*lines, *(line(item) for item in items)])
    lost = losses(subject, {HASHES, NO_DEPS, PIP, BUILT, ACTIVATION})
    return Rendered(files={"requirements.txt": f"{comment(head)}{body}\n"}, lost=lost)


def _indexes(subject: Subject, used: set[str]) -> tuple[list[str], str | None]:
    """URLs of the extra indexes in order of priority, and of the one that stands last; None = the installer's own."""
    named = [name for name in subject.indexes if name in used]
    if any(subject.indexes[name] is None for name in named):
        default = None
        rest = [name for name in named if subject.indexes[name] is not None]
    else:
        open_to_all = [index.name for index in subject.profile.indexes if not index.packages and index.name in named]
        last = (open_to_all or named or [""])[-1]
        default = subject.indexes.get(last)
        rest = [name for name in named if name != last]
    return [url for name in rest if (url := subject.indexes[name]) is not None], default
