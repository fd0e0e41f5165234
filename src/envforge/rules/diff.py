"""What differs between two states."""

from __future__ import annotations

from collections.abc import Iterable

from envforge.model.plan import Change
from envforge.model.state import Distribution, State, bringer


def differs(before: Distribution, after: Distribution) -> bool:
    """Whether it is not the same artefact from the same place.

    What one side does not know (a digest of contents while only predicted, an index) is no difference.
    """
    if before.version != after.version:
        return True
    if before.sha256 and after.sha256:
        if before.sha256 != after.sha256:
            return True
    elif before.build != after.build:
        return True
    if before.contents and after.contents and before.contents != after.contents:
        return True
    return bool(before.index and after.index and before.index != after.index)


def same_build(before: Distribution, after: Distribution) -> bool:
    """Whether both are one build: by what was installed and the hash of the wheel, else by what is said of it.

    The hash alone does not tell: something may have been put in place of what came from the wheel.
    """
    if before.contents and after.contents and before.contents != after.contents:
        return False
    if before.sha256 and after.sha256:
        return before.sha256 == after.sha256
    if before.contents and after.contents:
        return True
    same_index = not before.index or not after.index or before.index == after.index
    return before.version == after.version and before.build == after.build and same_index


def changes(before: State, after: State) -> tuple[Change, ...]:
    """Everything added, removed or replaced, by name; the cause is for ``because`` to say."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or differs(old, new):
            found.append(Change(name=name, before=old, after=new))
    return tuple(found)


def told(found: Iterable[Change]) -> tuple[Change, ...]:
    """Without the distributions that only came or went with a conda package: that says it already."""
    every = tuple(found)
    names = {each.name for each in every}
    return tuple(each for each in every if not (_packages(each) and _packages(each) <= names))


def _packages(change: Change) -> set[str]:
    """The keys of the conda packages that brought both sides of a change; empty where one of them came otherwise."""
    found = set()
    for side in filter(None, (change.before, change.after)):
        key = bringer(side)
        if key is None:
            return set()
        found.add(key)
    return found
