"""`create --lock`: an environment built from a lock in a file, once that was found to satisfy the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envforge.engines.conda import subdir
from envforge.model import explicit
from envforge.model.errors import EnvforgeError
from envforge.model.lock import LockFile
from envforge.model.profile import Action, Backend, Profile
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.model.state import State
from envforge.probe import pythons
from envforge.profiles import loader
from envforge.rules.outdated import outdated
from envforge.store import lockfile
from envforge.store.scratch import scratch
from envforge.system import environ

from .create import claimed
from .ground import engine_for, specs
from .looking import markers
from .restoring import Lock, restore
from .shop import Shop


def create_locked(
    shop: Shop,
    file: Path,
    profile: Profile | None,
    *,
    name: str | None = None,
    replace_it: bool = False,
    any_machine: bool = False,
) -> Result[Build]:
    """Build what the lock in ``file`` holds, for ``profile``, or for the one that the lock was made from where None.

    Raises UsageError ``unreadable-file``, ``invalid-lock`` or ``newer-record``, EnvforgeError ``lock-outdated`` with
    every reason, and as `restore` does.
    """
    found = lockfile.read(file)
    before = loader.loads(found.text, f"{file} (profile)")
    chosen = profile or replace(before, source=str(file.resolve()))
    insist(shop, file, found, chosen, before)
    shop.tell(Note(text=f"lock {file}"))
    with claimed(shop, name or (chosen.name if profile is not None else found.name), replace=replace_it) as claim:
        held = Lock(
            called=f"`{file.name}`",
            generation=None,
            profile=chosen,
            states=tuple(step.state for step in found.steps),
            python=found.python,
            substitutes=found.substitutes,
            wheels=file.resolve().parent,
            base=found.base or None,
        )
        try:
            return restore(shop, claim, held, command="create", any_machine=any_machine)
        except EnvforgeError as error:
            if error.code == "not-restorable":
                error.hint = "lay wheels that were built elsewhere beside the lock; `envforge lock` makes a new one"
            raise


def insist(shop: Shop, file: Path, found: LockFile, profile: Profile, before: Profile) -> None:
    """See that the lock satisfies ``profile``; ``before``: the one in it. Raises EnvforgeError ``lock-outdated``."""
    reasons = []
    conda = profile.backend is Backend.CONDA and found.base
    if not conda and not pythons.fits(found.python, profile.python):
        reasons.append(f"the lock is for Python {found.python}, and the profile asks for {profile.python}")
    there, here = explicit.platform(found.base), subdir(environ.architecture())
    if there is not None and there != here:
        reasons.append(f"the lock holds packages for `{there}`, and this machine takes those for `{here}`")
    reasons += outdated(
        profile, found.steps, before=before, markers=markers(found.python), substitutes=found.substitutes,
        base=found.base, unmatched=_unmatched(shop, found, profile) if conda else {},
    )  # fmt: skip
    if reasons:
        raise EnvforgeError(
            "lock-outdated",
            f"`{file}` does not satisfy the profile `{profile.name}`",
            cause="\n".join(reasons),
            hint="`envforge lock` makes a new one; without a profile, `create --lock` takes the one in the lock",
        )


def _unmatched(shop: Shop, found: LockFile, profile: Profile) -> Mapping[str | None, Sequence[str]]:
    """See `outdated`. Raises EnvforgeError ``bad-match-spec``."""
    held = {step.name: step.state for step in found.steps}
    asked: dict[str | None, tuple[Sequence[str], State]] = {None: (specs(profile), found.base)}
    for position, step in enumerate(profile.steps, 1):
        if step.action is Action.CONDA and step.name in held:
            asked[step.name] = (specs(profile, position), held[step.name])
    with scratch(shop.settings.cache / "scratch") as folder:
        engine = engine_for(shop, profile, folder)
        left = engine.unmatched(asked.values(), what=f"the profile `{profile.name}`")
    return dict(zip(asked, left, strict=True))
