"""A seal on a generation: bytecode compiled, the tree closed, and opened for what envforge itself changes in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envforge.engines import seals
from envforge.engines.seals import Tally
from envforge.model.errors import LeftoverError
from envforge.model.progress import Note
from envforge.store.journal import Journal
from envforge.store.layout import Home
from envforge.system import environ, process

from .generations import sealed
from .shop import Shop

_TEXT = """\
The environment `{name}` is kept by envforge, and it is sealed.

To change what it holds, edit its profile, then:

    envforge update {name}

To change it by hand all the same, open it first:

    envforge unseal {name}
"""
_PATIENCE = 3600.0  # seconds for the bytecode of the largest environment on the slowest disk
_SOME_FAILED = 1  # compileall: files that are no Python of this version, of which every large environment has some
_NAMED = 5


def close(shop: Shop, name: str, generation: int) -> Tally:
    """Seal a generation, and say what a user should know of that; the caller holds the environment's lock.

    Raises EnvforgeError, LeftoverError ``seal-incomplete``: then it counts as sealed, and `seal` closes the rest.
    """
    if sealed(shop.home, name, generation):
        # A command was killed while it had it open: what that changed wants its bytecode, too.
        _lift(shop.home, name, generation)
    tally, problem = _close(shop.home, name, generation)
    if problem is not None:
        shop.tell(Note(text=f"bytecode could not be compiled: {problem}", level="warning"))
    if environ.is_root():
        shop.tell(Note(text="root may write everywhere: for root the seal is but a sign", level="warning"))
    return tally


def open_(home: Home, name: str, generation: int) -> Tally:
    """Take the seal off for good; the caller holds the environment's lock.

    Raises EnvforgeError, LeftoverError ``seal-incomplete``: then it still counts as sealed.
    """
    tally = _lift(home, name, generation)
    Journal(home.journal(name, generation)).append("unsealed")
    return tally


@contextmanager
def opened(home: Home, name: str, generation: int) -> Iterator[None]:
    """Open a sealed generation for the time of a change in place, and close it again however that ends.

    Nothing is done to one that is not sealed. The caller holds the environment's lock. The journal says "sealed" all
    the time: what is killed in between is closed by the next that calls this, or by `seal`. Bytecode of what changed
    is compiled before the end; that it cannot be is no error. Raises EnvforgeError, LeftoverError ``seal-incomplete``.
    """
    if not sealed(home, name, generation):
        yield
        return
    _lift(home, name, generation)
    try:
        yield
    finally:
        _close(home, name, generation)


def is_whole(home: Home, name: str, generation: int) -> bool:
    """Whether a sealed generation is closed throughout; what is found open is closed.

    Raises LeftoverError ``seal-incomplete``.
    """
    with _told(name, "closed"):
        tally = seals.close(home.prefix(name, generation))
    _insist(name, tally, "closed")
    return not (tally.files or tally.folders)


def _close(home: Home, name: str, generation: int) -> tuple[Tally, str | None]:
    """What was closed, and why there is no bytecode (None where there is).

    The journal says "sealed" before the first folder is closed: so whoever finds it half closed knows what to do.
    """
    prefix = home.prefix(name, generation)
    problem = _compile(prefix)
    with _told(name, "closed"):
        seals.mark(prefix, _TEXT.format(name=name))
        Journal(home.journal(name, generation)).append("sealed")
        tally = seals.close(prefix)
    _insist(name, tally, "closed")
    return tally, problem


def _lift(home: Home, name: str, generation: int) -> Tally:
    prefix = home.prefix(name, generation)
    with _told(name, "opened"):
        tally = seals.open_(prefix)
        _insist(name, tally, "opened")
        seals.unmark(prefix)
    return tally


def _compile(prefix: Path) -> str | None:
    """Compile the bytecode of all that is installed; why that was not possible, None where it was.

    By the environment's own Python, without its site-packages: nothing that is installed there is run.
    """
    sites = [str(site) for site in sorted(prefix.glob("lib*/python3.*/site-packages")) if not _is_alias(site)]
    argv = [
        str(prefix / "bin" / "python"), "-I", "-S", "-m", "compileall", "-qq", "-j", "0",
        "--invalidation-mode", "timestamp", *sites,
    ]  # fmt: skip
    try:
        completed = process.run(argv, env=environ.hermetic(), timeout=_PATIENCE)
    except OSError as error:
        return f"its Python cannot be started ({error})"
    return None if completed.ok or completed.status == _SOME_FAILED else completed.ending()


def _is_alias(site: Path) -> bool:
    """Whether it is another name of the same site-packages, such as lib64, or leads elsewhere."""
    return any(folder.is_symlink() for folder in (site, *list(site.parents)[:2]))


def _insist(name: str, tally: Tally, what: str) -> None:
    if not tally.failed:
        return
    count = len(tally.failed)
    places = "a place in it" if count == 1 else f"{count} places in it"
    raise LeftoverError(
        "seal-incomplete",
        f"`{name}` could not be {what} whole: {places} cannot be changed",
        cause="\n".join([*tally.failed[:_NAMED], *(["..."] if count > _NAMED else [])]),
        hint="give them to your user, or call the command as who owns them, then again",
    )


@contextmanager
def _told(name: str, what: str) -> Iterator[None]:
    """What the system refuses, in the user's words."""
    try:
        yield
    except OSError as error:
        raise LeftoverError(
            "seal-incomplete", f"`{name}` could not be {what}", cause=f"{error.filename or ''}: {error.strerror}"
        ) from error
