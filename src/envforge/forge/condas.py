"""What the user's own conda knows of an environment: its list of them, and the name and the path to activate it by."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from envforge.engines import conda_registry
from envforge.model.progress import Note
from envforge.model.views import Activation
from envforge.probe import conda_meta, condas
from envforge.probe.condas import Condas
from envforge.store.layout import Home

from .shop import Shop

_RESERVED = frozenset({"base", "root"})


def keep_listed(shop: Shop, name: str) -> None:
    """Let conda list the environment ``name`` if what is in use is one of its kind, and no longer if it is not.

    An environment that was adopted is its maker's to list. That the list cannot be written is told, and no error.
    """
    home = shop.home
    current = home.current(name)
    if current is None or home.adopted(name, current) is not None:
        return
    if not conda_meta.is_environment(home.prefix(name, current)):
        unlist(shop, name)
        return
    file = condas.registry()
    try:
        if conda_registry.add(file, _place(home, name)):
            shop.tell(Note(text=f"`conda env list` has it from now on (`{file}`)", level="verbose"))
    except OSError as error:
        shop.tell(_not_written(file, error, f"conda does not list `{name}`"))


def unlist(shop: Shop, name: str) -> None:
    """Let conda no longer list the environment ``name``; that the list cannot be written is told, and no error."""
    file = condas.registry()
    try:
        conda_registry.drop(file, _place(shop.home, name))
    except OSError as error:
        shop.tell(_not_written(file, error, f"conda goes on listing `{name}`"))


def _place(home: Home, name: str) -> str:
    return os.path.normpath(home.link(name).absolute())


def _not_written(file: Path, error: OSError, what: str) -> Note:
    return Note(text=f"{what}: `{file}` cannot be written ({error.strerror or error})", level="warning")


def activation(home: Home, name: str) -> Activation | None:
    """How `conda activate` finds what is in use of ``name``; None where that is no environment of conda's kind."""
    current = home.current(name)
    if current is None or not conda_meta.is_environment(home.prefix(name, current)):
        return None
    return found(condas.look(), _place(home, name))


def found(there: Condas, place: str) -> Activation:
    """How the condas that are ``there`` find the environment at ``place``."""
    name, folder = os.path.basename(place), os.path.dirname(place)  # noqa: PTH119, PTH120 - text in, text out
    by_path = f"conda activate {shlex.quote(place)}"
    if name in _RESERVED:
        return Activation(by_path=by_path, other=next(iter(there.roots), "conda itself"))
    first = _first(there.envs_dirs, name)
    if first is not None and _same(first, place):
        return Activation(by_path=by_path, by_name=f"conda activate {name}")
    if any(_same(each, folder) for each in there.envs_dirs):
        return Activation(by_path=by_path, other=first)
    # Where nothing is configured, conda makes new environments in the first folder of its own: that stays the first.
    before = there.configured or (there.fixed[:1] if there.roots else ())
    ahead = _first(before, name)
    if ahead is not None:
        return Activation(by_path=by_path, other=ahead)
    added = [folder] if there.configured else [*before, folder]
    words = [word for each in added for word in ("--append", "envs_dirs", each)]
    return Activation(by_path=by_path, enable=shlex.join(["conda", "config", *words]), other=first)


def _first(folders: tuple[str, ...], name: str) -> str | None:
    """What conda takes for ``name``: the first folder that is called so."""
    places = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118 - text in, text out
    return next((place for place in places if os.path.isdir(place)), None)  # noqa: PTH112 - as above


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
