"""What the records say of an environment's generations: which was in use, which is there, what a lock of it holds."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envforge.model.errors import EnvforgeError
from envforge.model.profile import Profile
from envforge.model.state import State, is_package, shown
from envforge.probe.installed import canonical, is_info
from envforge.store import snapshots
from envforge.store.journal import Journal
from envforge.store.layout import Home


def linked(home: Home, name: str) -> int | None:
    """The generation that the environment's link leads to, though its folder may be gone; None where there is none."""
    current = home.current(name)
    if current is not None:
        return current
    try:
        number = home.link(name).readlink().name
    except OSError:
        return None
    return next((known for known in home.generations(name) if str(known) == number), None)


def in_use_once(home: Home, name: str, generation: int) -> bool:
    """Whether it ever was what the environment is; what a damaged journal cannot tell, it was not."""
    if home.current(name) == generation:
        return True
    try:
        return any(event.kind == "switched" for event in Journal(home.journal(name, generation)).events())
    except EnvforgeError:
        return False


def sealed(home: Home, name: str, generation: int) -> bool:
    """Whether it is read-only, as its journal says. Raises EnvforgeError ``corrupt-record``."""
    events = Journal(home.journal(name, generation)).events()
    last = next((event.kind for event in reversed(events) if event.kind in {"sealed", "unsealed"}), None)
    return last == "sealed"


def broken(home: Home, name: str, generation: int) -> str | None:
    """Why the prefix cannot be used as it was recorded, as far as a few looks tell; None where nothing speaks against.

    No file is read but the last snapshot: whether the files are whole only an audit can say.
    """
    prefix = home.prefix(name, generation)
    if not home.holds(name, generation):
        return "its folder is gone"
    if not os.access(prefix / "bin" / "python", os.X_OK):
        return "its Python is gone"
    try:
        snapshot = snapshots.latest(home, name, generation)
    except EnvforgeError as error:
        return error.message
    if snapshot is None:
        return "no snapshot of it is recorded"
    there = sorted(
        canonical(os.path.splitext(entry)[0])  # noqa: PTH122 - names, not paths
        for site in prefix.glob("lib*/*/site-packages")
        for entry in os.listdir(site)  # noqa: PTH208 - as above
        if is_info(entry)
    )
    meta = {file.name.rsplit("-", 2)[0] for file in prefix.glob("conda-meta/*.json")}
    missing = [
        shown(each)
        for each in snapshot.state
        if (shown(each) not in meta if is_package(each) else not _listed(each, there))
    ]
    if missing:
        first = ", ".join(f"`{each}`" for each in missing[:5])
        return f"{first} {'is' if len(missing) == 1 else 'are'} missing in it"
    return None


def _listed(name: str, there: list[str]) -> bool:
    """Whether one of the sorted canonical ``NAME`` or ``NAME-VERSION`` in ``there`` is of ``name``."""
    position = bisect_left(there, name)
    return position < len(there) and (there[position] == name or there[position].startswith(f"{name}-"))


def put_in_place(home: Home, name: str, generation: int, **said: Any) -> None:
    """Make ``generation`` the environment and write that into its journal, with ``said``. Raises EnvforgeError."""
    before = home.current(name)
    if before is not None and before != generation:
        journal = Journal(home.journal(name, before))
        try:
            if not any(event.kind == "switched" for event in journal.events()):
                # Its own switch was killed before it was written down; from now on the link does not tell it any more.
                journal.append("switched")
        except EnvforgeError:
            pass  # a damaged journal of the old generation does not stand in the way of the new one
    home.switch(name, generation)
    Journal(home.journal(name, generation)).append("switched", **said)


def beginning(home: Home, name: str, generation: int) -> Mapping[str, Any]:
    """What the journal says of the beginning of a build, or of an adoption; nothing where the journal is gone."""
    events = Journal(home.journal(name, generation)).events()
    return next((event.data for event in events if event.kind in {"started", "adopted"}), {})


def made(home: Home, name: str, generation: int, profile: Profile, last: int) -> int:
    """Which snapshot a step made last, or the adoption; those from there to ``last`` were accepted."""
    return 1 if home.adopted(name, generation) is not None else min(last, len(profile.steps))


def profile(home: Home, name: str, generation: int) -> Profile:
    """The profile as it was built, with the path that it was read from. Raises EnvforgeError."""
    from .profiles import recorded  # noqa: PLC0415 - who only switches reads no profile, which costs more than all else

    found = recorded(home, name, generation)
    # A requirement with a relative path counts from the file that said so, and an update reads that again.
    begun = beginning(home, name, generation)
    source = str(Path(begun.get("source") or found.source))
    return replace(found, source=source, overridden="backend" in begun)


def states(home: Home, name: str, generation: int, steps: int) -> tuple[State, ...]:
    """What was installed after each of the first ``steps`` steps. Raises EnvforgeError where one is not recorded."""
    return tuple(snapshots.read(home, name, generation, position).state for position in range(1, steps + 1))
