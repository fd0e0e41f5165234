"""Whether all files of a lock can be had, found out before anything is built, and told all at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envforge.engines.artefacts import Artefact
from envforge.model.errors import EnvforgeError
from envforge.model.progress import Working
from envforge.model.state import Distribution, State, distributions, packages
from envforge.rules.diff import changes as differences

from .bench import Bench
from .shop import Shop

_NAMED = 40


def reach(shop: Shop, work: Bench, base: State, locked: Sequence[State]) -> None:
    """Make sure that the files of the lock can be had; what an index says of them is asked only where it is needed.

    Raises EnvforgeError naming all others: offline (``not-cached``) the ones that the cache lacks, else
    (``not-restorable``) those that no index knows any more. What pip keeps in its cache cannot be looked at: there, the
    first one that it lacks ends its step.
    """
    wanted = tuple(_entering(base, locked))
    shop.tell(Working(what=f"looking for {len(wanted)} files of the lock"))
    with ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1)) as pool:
        looked = list(pool.map(lambda item: _look(work, item), wanted))
    lacking = {item.file or item.name: told for item, told in zip(wanted, looked, strict=True) if isinstance(told, str)}
    if shop.settings.offline and shop.settings.engine == "uv":
        there = [told for told in looked if isinstance(told, Artefact) and not work.router.kept(told)]
        lacking |= {artefact.file: "" for artefact in _uncached(work, there)}
    if shop.settings.offline and work.conda is not None:
        # Two steps may hold two versions of one package.
        packed = {f"{name} {item.file}": item for state in locked for name, item in packages(state).items()}
        lacking |= {item.file or item.name: "" for item in work.conda.uncached(packed)}
    shop.tell(Working(what=None))
    if lacking:
        raise _lacking(lacking, offline=shop.settings.offline)


def take_in(work: Bench, folder: Path, locked: Iterable[State]) -> None:
    """Take wheels of the lock that were built elsewhere from ``folder`` into envforge's own store, by their sha256."""
    for item in {item.sha256: item for state in locked for item in state.values()}.values():
        if item.origin is None or item.sha256 is None or item.file is None or work.built.by_hash(item.sha256):
            continue
        wheel = folder / item.file
        if wheel.is_file() and _digest(wheel) == item.sha256:
            work.built.keep(wheel, item.origin, None)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _entering(base: State, locked: Sequence[State]) -> Iterable[Distribution]:
    """What the steps of the lock install, each file once; what a program put there has none."""
    found: dict[tuple[str, str], Distribution] = {}
    before = distributions(base)
    for state in map(distributions, locked):
        for change in differences(before, state):
            if change.after is not None and change.after.sha256 is not None:
                found[change.name, change.after.sha256] = change.after
        before = state
    return found.values()


def _look(work: Bench, item: Distribution) -> Artefact | str:
    """The file with its metadata in the cache, or why it cannot be had."""
    if item.origin is not None and work.built.by_hash(item.sha256 or "") is None:
        return "no index has it: it was built once, and is not in envforge's own store"
    try:
        artefact = work.router.locked(item)
        work.router.metadata(artefact)
    except EnvforgeError as error:
        return error.message
    return artefact


def _uncached(work: Bench, artefacts: Iterable[Artefact]) -> Iterable[Artefact]:
    """Those that uv's cache lacks. It is asked about one version of a name at a time."""
    rounds: list[dict[str, Artefact]] = []
    for artefact in artefacts:
        free = next((each for each in rounds if artefact.name not in each), None)
        if free is None:
            rounds.append(free := {})
        free[artefact.name] = artefact
    assert work.python is not None  # noqa: S101 - what is restored is restored on this machine
    for each in rounds:
        yield from work.uv.uncached(tuple(each.values()), work.python, work.scratch)


def _lacking(lacking: dict[str, str], *, offline: bool) -> EnvforgeError:
    names = sorted(lacking)
    lines = [f"`{name}`" + (f": {lacking[name]}" if lacking[name] else "") for name in names[:_NAMED]]
    if len(names) > _NAMED:
        lines.append(f"... and {len(names) - _NAMED} more")
    number = "one file of the lock is" if len(names) == 1 else f"{len(names)} files of the lock are"
    cause = "\n".join(lines)
    if offline:
        return EnvforgeError(
            "not-cached",
            f"{number} not in the cache, and the network may not be asked",
            cause=cause,
            hint="run it once without `--offline`",
        )
    return EnvforgeError(
        "not-restorable",
        f"{number} nowhere to be had",
        cause=cause,
        hint="`envforge rebuild ENV --fresh` resolves the profile anew",
    )
