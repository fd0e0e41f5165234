"""The compiled files of an environment, looked at once and remembered by their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from envforge.model.drift import Seen
from envforge.model.machine import Machine
from envforge.model.native import Compiled, Native
from envforge.model.profile import Profile, Symbol
from envforge.model.snapshot import Snapshot
from envforge.model.state import FileRow, State
from envforge.probe import compiled, drift, gpus, host_libraries
from envforge.probe import native as natives
from envforge.probe.native import interpreter
from envforge.profiles import matching
from envforge.rules.wording import below_site
from envforge.store.elf_cache import ElfCache
from envforge.store.layout import Home

Look = tuple[int, int, int]
"""Size, mtime and inode."""


def cache(home: Home) -> ElfCache:
    return ElfCache(home.cache / "elf")


def look(
    home: Home,
    prefix: Path,
    *,
    rows: Sequence[FileRow],
    state: State,
    digests: Mapping[str, str | None],
    profile: Profile | None,
) -> Native:
    """What the compiled files among ``rows`` are and lack, as one environment.

    ``digests``: path -> sha256 (hex) of what lies there, for what is known of it: that is not read again where it was
    before, and remembered otherwise. Wheels that brought GPU code are remembered too, see `ElfCache.wheels`.
    """
    kept = cache(home)
    paths = compiled.candidates(rows)
    told = kept.files(sha256 for path in paths if (sha256 := digests.get(path)) is not None)
    objects = {path: told[sha256] for path in paths if (sha256 := digests.get(path)) is not None and sha256 in told}
    fresh = compiled.read(prefix, (path for path in paths if path not in objects))
    owners = {row.path: row.owners[0] if row.owners else None for row in rows}
    found = natives.look(prefix, objects | fresh, owners, state, symbols(profile))
    new = {sha256: facts for path, facts in fresh.items() if (sha256 := digests.get(path)) is not None}
    kept.keep(new, _wheels(found, state, {owners[path] for path in fresh if path in digests}))
    return found


def symbols(profile: Profile | None) -> tuple[tuple[str, str], ...]:
    """Symbol and library of every guard that asks for one."""
    guards = profile.guards if profile is not None else ()
    return tuple((guard.symbol, guard.library) for guard in guards if isinstance(guard, Symbol))


def _wheels(found: Native, state: State, owners: Collection[str | None]) -> Mapping[str, tuple[Compiled, ...]]:
    """Digest of the wheel -> its files with GPU code, of the distributions ``owners``, of which something is new."""
    wheels: dict[str, list[Compiled]] = {}
    for each in found.objects:
        item = state.get(each.owner or "")
        if each.code and item is not None and item.sha256 is not None and item.name in owners:
            told = Compiled(path=below_site(each.path), owner=None, code=each.code)
            wheels.setdefault(item.sha256, []).append(told)
    return {sha256: tuple(objects) for sha256, objects in wheels.items()}


def key(prefix: Path, looks: Mapping[str, Look], state: State, profile: Profile | None) -> str:
    """What differs once something else would be found: the files, the distributions, the guards, the host.

    ``looks``: of every compiled file, by path.
    """
    whole = [
        sorted(looks.items()),
        sorted((name, item.version, item.record) for name, item in state.items()),
        symbols(profile),
        host_libraries.stamp(),
        interpreter(prefix),
    ]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def looks_now(now: Seen) -> Mapping[str, Look]:
    """Of what a walk found."""
    # A ctime moves where another environment links to the file, too.
    return {path: (now[path][0], now[path][1], now[path][3]) for path in compiled.named(now)}


def looks_of(rows: Iterable[FileRow]) -> Mapping[str, Look]:
    """The same, of a table of files."""
    # A walk does not tell links from files.
    found = {row.path: row for row in rows}
    return {path: (found[path].size, found[path].mtime, found[path].inode) for path in compiled.named(found)}


def cards(profile: Profile, machine: Machine | None = None) -> tuple[str, ...]:
    """The compute capability of each GPU of ``machine`` (this one where None) that fits ``profile``."""
    if machine is None:
        seen = gpus.look()
        machine = Machine(
            system="", architecture="", glibc=None, hostname="", gpus_status=seen.status, gpus=seen.cards,
            driver=seen.driver, cuda=seen.cuda,
        )  # fmt: skip
    fit = matching.fits(profile, machine)
    return tuple(each.card.compute_capability for each in fit.cards if each.fits)


def has_code(native: Native) -> bool:
    """Whether anything is there that a card would run."""
    return any(each.code for each in native.objects)


def recorded(
    home: Home,
    prefix: Path,
    snapshot: Snapshot,
    *,
    rows: Sequence[FileRow],
    state: State,
    changed: Collection[str],
    profile: Profile,
) -> Native:
    """The compiled files of a generation. ``snapshot`` with its files, which vouches for all but ``changed``."""
    paths = set(compiled.candidates(rows))
    digests = drift.expected(prefix, snapshot, paths - set(changed)) if paths else {}
    return look(home, prefix, rows=rows, state=state, digests=digests, profile=profile)
