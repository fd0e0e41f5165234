"""Generations of an environment that are not needed any more: which they are, and taking them away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.progress import Note, Working
from envforge.model.views import Skipped, User
from envforge.probe import processes
from envforge.store.journal import Journal
from envforge.store.layout import Home

from .generations import broken, linked
from .remove import delete
from .shop import Shop

_ENDS = frozenset({"started", "resumed", "interrupted", "failed", "abandoned", "pruned"})
_GOES_ON = frozenset({"started", "resumed", "interrupted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spare:
    """A folder that can go. ``kind``, ``generation``: see `model.views.Pruned`."""

    kind: str
    environment: str
    path: Path
    generation: int | None = None

    def what(self, home: Home) -> str:
        if self.kind != "orphan":
            return f"{self.environment}/{self.generation}"
        return self.path.relative_to(home.root).as_posix()


def spare(home: Home, name: str, keep: int) -> tuple[tuple[Spare, ...], tuple[Skipped, ...]]:
    """What of ``name`` can go, and what stays although it looks so; the caller holds the environment's lock.

    The generation in use stays, and of the others that were in use the newest, so that ``keep`` remain. One that never
    was in use goes, unless the next `create` would go on with it. Records are not touched.
    """
    current, known = linked(home, name), home.generations(name)
    found = [Spare(kind="orphan", environment=name, path=path) for path in home.discards(name)]
    if home.switching(name).is_symlink():
        found.append(Spare(kind="orphan", environment=name, path=home.switching(name)))
    skipped: list[Skipped] = []
    used: list[int] = []
    for number in home.prefixes(name):
        prefix = home.prefix(name, number)
        if number == current or prefix.is_symlink():
            continue
        if number not in known:
            found.append(Spare(kind="orphan", environment=name, path=prefix, generation=number))
            continue
        try:
            kinds = [event.kind for event in Journal(home.journal(name, number)).events()]
        except EnvforgeError as error:
            skipped.append(_skipped(name, number, f"whether it was in use is not known: {error.message}"))
            continue
        if "switched" in kinds:
            used.append(number)
        elif number == known[-1] and next((kind for kind in reversed(kinds) if kind in _ENDS), "") in _GOES_ON:
            skipped.append(_skipped(name, number, "its build was interrupted, and the next `create` goes on with it"))
        else:
            found.append(_generation(home, "failed", name, number))
    old = _beyond(home, name, used, keep - (current is not None))
    return (*found, *(_generation(home, "old", name, number) for number in old)), tuple(skipped)


def _beyond(home: Home, name: str, used: list[int], stay: int) -> list[int]:
    """Those of ``used``, ascending, that are older than the newest ``stay`` that a rollback could go to."""
    position = len(used)
    while position and stay > 0:
        position -= 1
        if position < stay or broken(home, name, used[position]) is None:
            stay -= 1
    return used[:position]


def _generation(home: Home, kind: str, name: str, number: int) -> Spare:
    return Spare(kind=kind, environment=name, path=home.prefix(name, number), generation=number)


def _skipped(name: str, number: int, why: str, users: tuple[User, ...] = ()) -> Skipped:
    return Skipped(what=f"{name}/{number}", environment=name, generation=number, why=why, processes=users)


def in_use(home: Home, item: Spare) -> Skipped | None:
    """Why it cannot go: the processes that use it; None where none does."""
    # What a link leads to is another matter: only the link would go.
    found = () if item.path.is_symlink() else processes.using(item.path)
    users = tuple(User(pid=user.pid, user=user.user, command=" ".join(user.argv)) for user in found)
    if not users:
        return None
    return Skipped(
        what=item.what(home), environment=item.environment, generation=item.generation, why="in use", processes=users
    )


def take(home: Home, item: Spare) -> list[str]:
    """Remove it; returns what is left, each with the reason.

    The folder is moved aside first: whenever this is killed, it is there whole or not at all, and the next prune goes
    on.
    """
    path = item.path
    try:
        if item.generation is not None:
            if item.generation in home.generations(item.environment):
                Journal(home.journal(item.environment, item.generation)).append("pruned")
            aside = home.discarded(item.environment, item.generation)
            left = delete(aside)
            if left:
                return left
            path = path.rename(aside)
        return delete(path)
    except (EnvforgeError, OSError) as error:
        return [f"{path}: {getattr(error, 'cause', None) or getattr(error, 'strerror', None) or error}"]


def thin_out(shop: Shop, name: str) -> None:
    """After a new generation took its place: remove those beyond ``keep_generations``, and say so.

    What goes wrong is a note: the new generation is in use, whatever becomes of the old ones.
    """
    home, keep = shop.home, shop.settings.keep_generations
    gone = []
    try:
        for item in spare(home, name, keep)[0]:
            if item.kind != "old":
                continue
            what, stays = item.what(home), in_use(home, item)
            if item.generation is not None and _accepted(home, name, item.generation):
                text = f"{what} stays, since no lock restores what was accepted in it: `envforge prune` removes it"
                shop.tell(Note(text=text))
                continue
            if stays is not None:
                shop.tell(Note(text=f"{what} stays, {_told(stays)}: `envforge prune` removes it later"))
                continue
            shop.tell(Working(what=f"removing {what}"))
            left = take(home, item)
            shop.tell(Working(what=None))
            if left:
                shop.tell(Note(text=f"{what} could not be removed: {left[0]}", level="warning"))
            else:
                gone.append(what)
    except (EnvforgeError, OSError) as error:
        shop.tell(Note(text=f"old generations of `{name}` stay: {error}", level="warning"))
    if gone:
        number = f"the newest {keep} generations are" if keep > 1 else "the generation in use is"
        shop.tell(Note(text=f"removed {', '.join(gone)}: only {number} kept (`keep_generations`)"))


def _accepted(home: Home, name: str, generation: int) -> bool:
    return any(event.kind == "accepted" for event in Journal(home.journal(name, generation)).events())


def _told(stays: Skipped) -> str:
    return "in use by " + ", ".join(f"process {user.pid} ({user.command})" for user in stays.processes)
