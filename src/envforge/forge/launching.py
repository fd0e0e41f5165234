"""Whether an environment looks as when it last was in order: remembered after a good look, compared at launches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envforge.model.drift import Launch
from envforge.probe import launch
from envforge.probe.stamps import differing
from envforge.store import stamp as kept
from envforge.store.layout import Home

_NAMED = 3
_SITE = "/site-packages/"


def remember(home: Home, name: str, generation: int, stamp: Launch) -> None:
    """``stamp`` was taken before a look that found all in order; where this user cannot write, nothing happens."""
    if kept.read(home, name, generation) != stamp:
        kept.write(home, name, generation, stamp)


def changed(home: Home, name: str, generation: int, prefix: Path) -> str | None:
    """What is not as it was when last in order, in a few words; empty = all is, None = nothing was remembered."""
    before = kept.read(home, name, generation)
    if before is None:
        return None
    other, gone, new = differing(before, launch.stamp(prefix))
    told = [
        *((path, "is new") for path in new),
        *((path, "is gone") for path in gone),
        *((path, "was changed") for path in other),
    ]
    # The metadata of distributions says most: it has their versions.
    told.sort(key=lambda each: not each[0].endswith((".dist-info", ".egg-info")))
    more = [f"{len(told) - _NAMED} more"] if len(told) > _NAMED else []
    return ", ".join([*_worded(told[:_NAMED]), *more])


def _worded(told: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (f"{path.partition(_SITE)[2] or path} {what}" for path, what in told)
