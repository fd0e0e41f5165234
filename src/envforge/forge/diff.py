"""What differs between two moments of environments: snapshots, or the present state of one."""

from __future__ import annotations

import re
from dataclasses import replace

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.result import Result
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution, State
from envforge.model.views import DiffView
from envforge.probe import prefix
from envforge.rules import diff as rules
from envforge.store import snapshots
from envforge.store.layout import Home

from .path import current, require
from .shop import Shop

_SNAPSHOT = re.compile(r"(?P<name>[^/]+)/(?P<generation>[0-9]{1,9})\.(?P<step>[0-9]{1,9})")


def diff(shop: Shop, before: str, after: str | None = None) -> Result[DiffView]:
    """From ``before`` to ``after``: each ``ENV/G.K``, or ``ENV`` for its present state.

    Without ``after``: from the snapshot (of ``ENV`` its last one) to the present state of the environment.
    Raises UsageError ``no-such-environment`` or ``invalid-name``; EnvforgeError ``snapshot-not-found``,
    ``no-generation``, ``corrupt-record``.
    """
    home = shop.home
    if after is None:
        found = _SNAPSHOT.fullmatch(before)
        after = found["name"] if found else before
        old = _side(home, before) if found else _recorded(_last(home, before))
    else:
        old = _side(home, before)
    new = _side(home, after)
    changes = rules.changes(old[1], new[1])
    return Result(command="diff", data=DiffView(before=old[0], after=new[0], changes=changes))


def _side(home: Home, text: str) -> tuple[str, State]:
    """What one side is called, and what it holds."""
    found = _SNAPSHOT.fullmatch(text)
    if found:
        name, generation, step = found["name"], int(found["generation"]), int(found["step"])
        return _recorded(snapshots.read(home, require(home, name), generation, step))
    if "/" in text:
        raise UsageError(
            "invalid-name", f"`{text}` is neither an environment nor a snapshot", hint="a snapshot is named `ENV/G.K`"
        )
    return text, _present(home, text)


def _recorded(snapshot: Snapshot) -> tuple[str, State]:
    return snapshot.id, snapshot.state


def _last(home: Home, name: str) -> Snapshot:
    generation, _ = current(home, name)
    snapshot = snapshots.latest(home, name, generation)
    if snapshot is None:
        raise EnvforgeError("snapshot-not-found", f"generation {generation} of `{name}` has no snapshot")
    return snapshot


def _present(home: Home, name: str) -> State:
    """What the generation in use holds now; where it came from is known only where its contents are as recorded."""
    generation, place = current(home, name)
    seen = prefix.look(place).state
    known = snapshots.latest(home, name, generation)
    if known is None:
        return seen
    return {key: _enriched(distribution, known.state.get(key)) for key, distribution in seen.items()}


def _enriched(seen: Distribution, known: Distribution | None) -> Distribution:
    if known is None or known.version != seen.version or known.contents != seen.contents:
        return seen
    return replace(
        seen,
        build=known.build,
        index=known.index,
        file=known.file,
        url=known.url,
        sha256=known.sha256,
        size=known.size,
        requested=known.requested,
        origin=known.origin,
    )
