"""The steps of an environment as what to remove and what to install, each file by its hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from envforge.model import explicit
from envforge.model.export import Subject, built, installable
from envforge.model.profile import Forbid, Guard, Hold, Keep, Profile, Step, Symbol
from envforge.model.state import Distribution, distributions, packages, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one step does. ``removed``: canonical names; ``installed``: index name (None: built here) -> files.

    ``dropped``: names of conda packages that go, also where another takes their place: not every conda removes what it
    replaces. ``linked``: those that come, each after those that it depends on.
    """

    step: Step
    removed: tuple[str, ...]
    installed: Mapping[str | None, tuple[Distribution, ...]]
    dropped: tuple[str, ...] = ()
    linked: tuple[Distribution, ...] = ()


def stages(subject: Subject) -> tuple[Stage, ...]:
    """One for each step of the profile, in order."""
    pairs = zip(subject.profile.steps, subject.states[:-1], subject.states[1:], strict=True)
    found = []
    for step, before, after in pairs:
        coming = [item for item in after.values() if installable(item) and not _same(before.get(item.name), item)]
        # An installer keeps what has the version asked for: another build of it must go first.
        equal = {item.name for item in coming if (old := before.get(item.name)) and old.version == item.version}
        # What a conda package brought goes with it.
        gone = {name for name, item in distributions(before).items() if name not in after and not _condas(item)}
        linked = [item for item in explicit.in_order(after) if not _same(before.get(item.name), item)]
        found.append(
            Stage(
                step=step,
                removed=tuple(sorted(gone | equal)),
                installed=_by_index(coming),
                dropped=tuple(
                    shown(name) for name, item in packages(before).items() if not _same(after.get(name), item)
                ),
                linked=tuple(linked),
            )
        )
    return tuple(found)


def in_order(subject: Subject) -> tuple[Distribution, ...]:
    """What is there at the end, in the order in which it came."""
    came: dict[str, int] = {}
    for position, stage in enumerate(stages(subject)):
        came |= {item.name: position for items in stage.installed.values() for item in items}
    ends = [item for item in subject.final.values() if installable(item)]
    return tuple(sorted(ends, key=lambda item: (came.get(item.name, -1), item.name)))


def line(item: Distribution, folder: str = ".") -> str:
    """The requirement that is this one file; ``folder``: where wheels that were built here are expected."""
    what = f"{folder}/{item.file}" if built(item) else f"{item.name}=={item.version}"
    return f"{what} --hash=sha256:{item.sha256}"


def groups(subject: Subject, stage: Stage, folder: str = ".") -> tuple[str, ...]:
    """The texts of requirement files that install what the step brings, one for each index that it comes from."""
    found = []
    for index, items in stage.installed.items():
        url = subject.indexes.get(index) if index is not None else None
        head = f"--index-url {url}\n" if url is not None else ""
        found.append(head + "".join(f"{line(item, folder)}\n" for item in items))
    return tuple(found)


def without_pip(subject: Subject) -> tuple[str, ...]:
    """What is lost where conda packages bring no pip that could install the rest, as a sentence."""
    if not subject.conda or "pip" in subject.final or not any(map(installable, subject.final.values())):
        return ()
    return ("what installs the rest: no conda package brings pip, add `pip` to the profile's `conda.packages`",)


def guards(profile: Profile) -> tuple[str, ...]:
    """The guards of the profile in words, as a reader may watch them."""
    return tuple(_guard(guard) for guard in profile.guards)


def comment(text: str) -> str:
    """``text`` as lines of a comment."""
    return "".join(f"# {each}\n" if each else "#\n" for each in text.splitlines())


def _condas(item: Distribution) -> bool:
    return item.origin is not None and item.origin.kind == "conda"


def _same(before: Distribution | None, after: Distribution) -> bool:
    return before is not None and (before.version, before.sha256) == (after.version, after.sha256)


def _by_index(items: Iterable[Distribution]) -> Mapping[str | None, tuple[Distribution, ...]]:
    found: dict[str | None, list[Distribution]] = {}
    for item in sorted(items, key=lambda each: each.name):
        found.setdefault(None if built(item) else item.index, []).append(item)
    return {index: tuple(group) for index, group in found.items()}


def _guard(guard: Guard) -> str:
    why = f" ({guard.because})" if guard.because else ""
    match guard:
        case Keep(names=names):
            return f"keep {', '.join(names)}: no later step may replace it{why}"
        case Hold(requirement=requirement):
            return f"hold {requirement}{why}"
        case Forbid(patterns=patterns):
            return f"forbid {', '.join(patterns)}{why}"
        case Symbol(symbol=symbol, library=library):
            return f"symbol {symbol} in {library}{why}"
        case _:
            return why.strip()
