"""`create --lock`: an environment built from a lock in a file, once that was found to satisfy the profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.lock import LockFile
from envforge.model.profile import Profile
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.probe import pythons
from envforge.profiles import loader
from envforge.rules.outdated import outdated
from envforge.store import lockfile

from .create import claimed
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
    insist(file, found, chosen, before)
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
        )
        try:
            return restore(shop, claim, held, command="create", any_machine=any_machine)
        except EnvforgeError as error:
            if error.code == "not-restorable":
                error.hint = "lay wheels that were built elsewhere beside the lock; `envforge lock` makes a new one"
            raise


def insist(file: Path, found: LockFile, profile: Profile, before: Profile) -> None:
    """See that the lock satisfies ``profile``; ``before``: the one in it. Raises EnvforgeError ``lock-outdated``."""
    reasons = []
    if not pythons.fits(found.python, profile.python):
        reasons.append(f"the lock is for Python {found.python}, and the profile asks for {profile.python}")
    reasons += outdated(
        profile, found.steps, before=before, markers=markers(found.python), substitutes=found.substitutes
    )
    if reasons:
        raise EnvforgeError(
            "lock-outdated",
            f"`{file}` does not satisfy the profile `{profile.name}`",
            cause="\n".join(reasons),
            hint="`envforge lock` makes a new one; without a profile, `create --lock` takes the one in the lock",
        )
