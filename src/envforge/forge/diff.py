"""What differs between two moments of environments: snapshots, or the present state of one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.result import Result
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution, State
from envforge.model.views import DiffView
from envforge.probe import prefix as prefixes
from envforge.probe.files import Side, compare
from envforge.rules import diff as rules
from envforge.store import snapshots
from envforge.store.layout import Home

from .path import current, require
from .shop import Shop

_SNAPSHOT = re.compile(r"(?P<name>[^/]+)/(?P<generation>[0-9]{1,9})\.(?P<step>[0-9]{1,9})")


def diff(shop: Shop, before: str, after: str | None = None, *, files: bool = False) -> Result[DiffView]:
    """From ``before`` to ``after``: each ``ENV/G.K``, or ``ENV`` for its present state.

    Without ``after``: from the snapshot (of ``ENV`` its last one) to the present state of the environment. ``files``:
    down to the file. Raises UsageError ``no-such-environment`` or ``invalid-name``; EnvforgeError
    ``snapshot-not-found``, ``no-generation``, ``corrupt-record``.
    """
    sides = _Sides(home=shop.home, files=files)
    if after is None:
        found = _SNAPSHOT.fullmatch(before)
        after = found["name"] if found else before
        old = sides.named(before) if found else sides.last(before)
    else:
        old = sides.named(before)
    new = sides.named(after)
    changes = rules.told(rules.changes(old.state, new.state))
    differing = None if old.files is None or new.files is None else compare(old.files, new.files)
    return Result(command="diff", data=DiffView(before=old.label, after=new.label, changes=changes, files=differing))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What one side is called, and what it holds; ``files`` None where they were not asked for."""

    label: str
    state: State
    files: Side | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Finds what the words name. ``files``: with the tables of files; ``read``: last snapshots, each read once."""

    home: Home
    files: bool
    read: dict[tuple[str, int], Snapshot | None] = field(default_factory=dict)

    def named(self, text: str) -> _Moment:
        found = _SNAPSHOT.fullmatch(text)
        if found:
            name, generation, step = found["name"], int(found["generation"]), int(found["step"])
            return self._recorded(
                snapshots.read(self.home, require(self.home, name), generation, step, files=self.files)
            )
        if "/" in text:
            raise UsageError(
                "invalid-name",
                f"`{text}` is neither an environment nor a snapshot",
                hint="a snapshot is named `ENV/G.K`",
            )
        return self._present(text)

    def last(self, name: str) -> _Moment:
        """The last snapshot of the generation in use."""
        generation, _ = current(self.home, name)
        snapshot = self._latest(name, generation)
        if snapshot is None:
            raise EnvforgeError("snapshot-not-found", f"generation {generation} of `{name}` has no snapshot")
        return self._recorded(snapshot)

    def _latest(self, name: str, generation: int) -> Snapshot | None:
        if (name, generation) not in self.read:
            self.read[name, generation] = snapshots.latest(self.home, name, generation, files=self.files)
        return self.read[name, generation]

    def _recorded(self, snapshot: Snapshot) -> _Moment:
        prefix = self.home.prefix(snapshot.environment, snapshot.generation)
        files = Side.recorded(prefix, snapshot) if self.files else None
        return _Moment(label=snapshot.id, state=snapshot.state, files=files)

    def _present(self, name: str) -> _Moment:
        """What the generation in use holds now; where it came from is known only where its contents are as recorded."""
        generation, _ = current(self.home, name)
        prefix = self.home.prefix(name, generation)
        seen = prefixes.look(prefix)
        known = self._latest(name, generation)
        recorded = known.state if known is not None else {}
        state = {key: _enriched(distribution, recorded.get(key)) for key, distribution in seen.state.items()}
        files = Side.present(prefix, known, seen) if self.files else None
        return _Moment(label=name, state=state, files=files)


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
