"""A dist-info folder without RECORD or METADATA, or whose RECORD names what is not in the environment; and conda's."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.state import Debris

from .context import Context
from .wording import WHOLE_DISTRIBUTIONS

_SHOWN = 10


def record_missing(context: Context) -> Iterator[Finding]:
    """One finding for every such folder; nothing while there is no observation."""
    observation = context.now.observation
    for debris in observation.debris if observation is not None else ():
        if debris.kind == "record-missing":
            yield _missing(debris)
        elif debris.kind == "outside":
            yield _outside(debris)


def _missing(debris: Debris) -> Finding:
    missing = " and ".join(f"`{name}`" for name in debris.missing)
    what = f"lacks {missing}" if missing else "is no record of a conda package"
    return Finding(
        id="record-missing",
        severity=Severity.ERROR,
        subject=debris.name,
        aspect=debris.path,
        message=f"`{debris.path}` {what}: nobody can say what belongs to `{debris.name}`",
        evidence={"guard": WHOLE_DISTRIBUTIONS, "path": debris.path, "missing": list(debris.missing)},
        remedy=f"set `{debris.path}` aside and install `{debris.name}` again",
    )


def _outside(debris: Debris) -> Finding:
    whose = ("conda-meta", "package") if debris.path.startswith("conda-meta/") else ("the RECORD", "wheel")
    number = "a file" if len(debris.rows) == 1 else f"{len(debris.rows)} files"
    return Finding(
        id="record-missing",
        severity=Severity.WARNING,
        subject=debris.name,
        aspect=f"{debris.path} outside",
        message=f"{whose[0]} of `{debris.name}` claims {number} outside the environment (`{debris.rows[0]}`): "
        "envforge does not follow it there, an uninstall by another tool may",
        evidence={
            "guard": WHOLE_DISTRIBUTIONS,
            "path": debris.path,
            "rows": list(debris.rows[:_SHOWN]),
            "count": len(debris.rows),
        },
        remedy=f"do not uninstall it with other tools; tell whoever made its {whose[1]}",
    )
