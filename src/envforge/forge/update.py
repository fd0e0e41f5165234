"""`update`: a new generation from the edited profile; leading steps that did not change come from the lock."""

from __future__ import annotations

from pathlib import Path

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import brought
from envforge.model.profile import Backend, Profile
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.model.state import State
from envforge.profiles import loader
from envforge.store import snapshots
from envforge.store.layout import Home, check_name
from envforge.store.locking import hold

from . import quarantining
from .create import build
from .generations import beginning, linked
from .profiles import recorded, with_backend
from .shop import Shop


def update(shop: Shop, name: str) -> Result[Build]:
    """Build ``name`` anew from its profile as the file reads now. Raises UsageError: no such environment."""
    home = shop.home
    with hold(home, check_name(name), "update"):
        current = linked(home, name)
        if current is None:
            known = name in home.environments()
            raise UsageError(
                "no-generation" if known else "no-such-environment",
                f"no generation of `{name}` is in use" if known else f"there is no environment `{name}`",
                hint=f"`envforge create PROFILE --name {name}` builds it" if known else "`envforge list` names them",
            )
        quarantining.journals(shop, name)
        profile = again(home, name, current)
        quarantining.records(shop, name, current)
        locked = unchanged(shop, name, current, profile)
        if locked:
            steps = ", ".join(f"`{step.name}`" for step in profile.steps[: len(locked)])
            shop.tell(Note(text=f"unchanged, so from the lock of generation {current}: {steps}"))
        # It was built for this machine, or in spite of it, once: a card that does not fit is told again, not refused.
        base = snapshots.read(home, name, current, 0).state if locked else None
        return build(shop, profile, name, command="update", any_machine=True, locked=locked, base=base)


def again(home: Home, name: str, generation: int) -> Profile:
    """The profile as its file reads now, for the backend that was asked for then. Raises EnvforgeError."""
    profile = loader.load(source(home, name, generation))
    backend = beginning(home, name, generation).get("backend")
    return with_backend(profile, Backend(backend)) if backend in set(Backend) else profile


def source(home: Home, name: str, generation: int) -> Path:
    """The file that the generation was built from. Raises EnvforgeError where it is gone."""
    path = Path(str(beginning(home, name, generation).get("source", "")))
    if path.suffix == ".toml":
        raise EnvforgeError(
            "profile-gone",
            f"`{name}` was built from the lock `{path}`, which holds its profile as it was then",
            hint=f"`envforge create PROFILE --name {name} --replace` builds it from a profile of its own",
        )
    if not path.is_file():
        raise EnvforgeError(
            "profile-gone",
            f"the profile of `{name}` was read from `{path}`, which is no longer there",
            hint=f"`envforge create PROFILE --name {name} --replace` builds it from another",
        )
    return path


def unchanged(shop: Shop, name: str, generation: int, profile: Profile) -> tuple[State, ...]:
    """What the lock holds after each leading step that reads as it did, under the same Python and constraints.

    Nothing where the recorded profile cannot be read. Raises UsageError ``newer-record``.
    """
    if shop.home.adopted(name, generation) is not None:
        return ()  # no step of the profile made it
    try:
        before = recorded(shop.home, name, generation)
    except UsageError:
        raise
    except EnvforgeError:
        return ()
    if beginning(shop.home, name, generation).get("substitutes", {}) != dict(shop.settings.substitutes):
        return ()  # another source may hold other builds: what the lock says may not be had, or not be wanted

    def frame(each: Profile) -> tuple[object, ...]:
        bounds = tuple(guard for guard in each.guards if getattr(guard, "constrain", False))
        return (each.python, each.backend, each.conda, each.indexes, bounds)

    if frame(before) != frame(profile):
        return ()
    states: list[State] = []
    for position, (old, new) in enumerate(zip(before.steps, profile.steps, strict=False), 1):
        if old != new:
            break
        try:
            state = snapshots.read(shop.home, name, generation, position).state
        except EnvforgeError:
            break
        if any(item.sha256 is None and not brought(item) for item in state.values()):
            break  # a step of kind run put it there: no lock restores it
        states.append(state)
    return tuple(states)
