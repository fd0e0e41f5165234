"""`adopt`: an environment that envforge did not build comes under its care, where it is and as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from envforge.model import wire
from envforge.model.drift import Adopted
from envforge.model.errors import UsageError
from envforge.model.finding import Severity
from envforge.model.profile import Profile
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.state import State, is_package
from envforge.probe import launch, surroundings
from envforge.rules.context import requested_by
from envforge.rules.diff import changes as differences
from envforge.rules.requirements import parse
from envforge.store import profiles as kept_profiles
from envforge.store import seen as kept_seen
from envforge.store.journal import Journal
from envforge.store.layout import Home, check_name
from envforge.store.locking import hold
from envforge.system import clock

from . import launching
from .foreign import checked, compare, found, judge, keeper, look
from .generations import put_in_place
from .remove import delete
from .shop import Shop
from .taking import hashed, remember, snapshot, told, written
from .witness import veiled

_FIRST = 1
_ENGINE = "unknown"
_NAMED = 5


def adopt(shop: Shop, path: Path, profile: Profile, *, name: str | None = None) -> Result[Adopted]:
    """Make the environment at ``path`` generation 1 of ``name`` (the profile's own where None), with a first snapshot.

    Nothing in ``path`` is run, changed or moved; ``profile`` gives the guards, and builds the next generation. What
    stands against the environment, be it an error, is told and does not keep it from being adopted. Raises UsageError
    ``not-an-environment``, ``environment-exists``, ``already-kept`` or ``not-adoptable``; EnvforgeError ``locked``.
    """
    home = shop.home
    started = clock.monotonic()
    chosen = check_name(profile.name if name is None else name)
    there = found(path)
    _refuse(home, there.prefix)
    home.ensure()
    with hold(home, chosen, f"adopt {path}"):
        if chosen in home.environments() or home.next_generation(chosen) != _FIRST:
            raise UsageError(
                "environment-exists",
                f"the environment `{chosen}` exists, or something that had its name left records or files",
                hint=f"choose another name with `--name`, or `envforge remove {chosen}` or `envforge prune` first",
            )
        home.refuse_foreign(chosen)
        compare(shop, there, profile)
        shop.tell(Working(what=f"looking at {there.prefix}"))
        stamp = launch.stamp(there.prefix)
        seen = look(there)
        shop.tell(Working(what=None))
        hidden = sorted(veiled(there.prefix, seen.observation, seen.testimony))
        if hidden:
            raise UsageError(
                "not-adoptable",
                f"`{there.prefix}` cannot be read whole by this user",
                cause="\n".join([*hidden[:_NAMED], *(["..."] if len(hidden) > _NAMED else [])]),
                hint="adopt it as its owner, or mend the permissions",
            )
        findings, _ = judge(shop.home, seen, profile)
        state = _requested(seen.observation.state, profile)
        notes = written(seen.observation.files, state.keys())
        taken = snapshot(
            shop,
            chosen,
            _FIRST,
            _FIRST,
            state=state,
            files=told(seen.observation.files, {**hashed(there.prefix, notes), **seen.testimony.digests}),
            python=there.python,
            engine=_ENGINE,
            profile=profile,
        )
        with _all_or_nothing(home, chosen):
            home.adopt(chosen, _FIRST, there.prefix)
            kept_profiles.write(home, chosen, _FIRST, profile)
            remember(home, taken, seen.observation, (*sorted(seen.testimony.digests), *notes), None)
            Journal(home.journal(chosen, _FIRST)).append(
                "adopted",
                path=str(there.prefix),
                profile=profile.name,
                source=str(Path(profile.source).resolve()),
                step=_FIRST,
                changes=[wire.change(change) for change in differences({}, state)],
                findings=[f"{each.id} {each.subject}" for each in findings if each.severity is Severity.ERROR],
                seconds=round(clock.monotonic() - started, 3),
            )
            kept_seen.write(
                home,
                chosen,
                _FIRST,
                seen.now,
                known=surroundings.entries(row.path for row in taken.files),
                observation=seen.observation,
                step=_FIRST,
            )
            put_in_place(home, chosen, _FIRST)
        if not any(each.severity is Severity.ERROR for each in findings):
            launching.remember(home, chosen, _FIRST, stamp)
    return Result(
        command="adopt",
        data=Adopted(
            environment=chosen,
            generation=_FIRST,
            snapshot=taken.id,
            path=str(there.prefix),
            profile=profile.name,
            backend=there.backend,
            python=there.python,
            checked=checked(seen, clock.monotonic() - started),
        ),
        findings=findings,
    )


def _refuse(home: Home, prefix: Path) -> None:
    """Raise UsageError for a prefix that is kept already, that would be written to, or whose path cannot be kept."""
    kept = keeper(home, prefix)
    if kept is not None:
        raise UsageError(
            "already-kept", f"`{prefix}` is generation {kept[1]} of `{kept[0]}` already", hint="see `envforge list`"
        )
    own = [home.generations_root, home.records_root, home.envs, home.locks_root, home.cache]
    if any(prefix.is_relative_to(os.path.realpath(folder)) for folder in own):
        raise UsageError("already-kept", f"`{prefix}` lies in envforge's own folders", hint="see `envforge list`")
    if any(Path(os.path.realpath(folder)).is_relative_to(prefix) for folder in (home.root, home.cache)):
        raise UsageError(
            "not-adoptable",
            f"envforge's own folders lie in `{prefix}`, where nothing may be written",
            hint="choose another home with `--home` or ENVFORGE_HOME",
        )
    if re.search(r"[:\n\r\udc80-\udcff]", str(prefix)):
        raise UsageError(
            "not-adoptable",
            f"`{prefix}` has a `:`, a line break or bytes that are no text in its path",
            cause="PATH and the records could not name it",
        )


def _requested(state: State, profile: Profile) -> State:
    """What the profile asks for counts as asked for; what an installer says of it does not: uv says it of all.

    Of its packages, conda knows.
    """
    wanted = (parse(text) for text in requested_by(profile.steps))
    asked = {each.name for each in wanted if each is not None}
    return {name: item if is_package(name) else replace(item, requested=name in asked) for name, item in state.items()}


@contextmanager
def _all_or_nothing(home: Home, name: str) -> Iterator[None]:
    """Leave no half of an adoption behind. Of the prefix, only the symlink to it is envforge's."""
    try:
        yield
    except BaseException:
        home.unlink(name)
        if home.prefix(name, _FIRST).is_symlink():
            home.prefix(name, _FIRST).unlink()
        delete(home.record(name, _FIRST))
        raise
