"""Where an environment really lies: what `path` prints, and the way by which the other use cases find one."""

from __future__ import annotations

import difflib
from pathlib import Path

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.result import Result
from envforge.model.views import PathView
from envforge.store.layout import Home, check_name

from .shop import Shop


def path(shop: Shop, name: str) -> Result[PathView]:
    """The real path of the generation in use; raises as `current` does."""
    generation, prefix = current(shop.home, name)
    return Result(command="path", data=PathView(environment=name, generation=generation, path=str(prefix)))


def require(home: Home, name: str) -> str:
    """Return ``name`` if there is such an environment.

    Raises UsageError ``invalid-name`` or ``no-such-environment``, with the names that come close.
    """
    there = home.environments()
    if check_name(name) in there:
        return name
    close = difflib.get_close_matches(name, there, n=3)
    hint = f"did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else "see `envforge list`"
    raise UsageError("no-such-environment", f"there is no environment `{name}` in `{home.root}`", hint=hint)


def current(home: Home, name: str) -> tuple[int, Path]:
    """The generation in use and its real path.

    Raises as `require` does, and EnvforgeError ``no-generation`` where a build never came to its end, or
    ``generation-missing`` where the folder of the one in use is gone.
    """
    generation = home.current(require(home, name))
    if generation is None:
        from .generations import linked  # noqa: PLC0415 - only who finds nothing asks further

        gone = linked(home, name)
        place = home.adopted(name, gone) if gone is not None else None
        if place is not None:
            raise EnvforgeError(
                "generation-missing",
                f"`{place}`, which was adopted as generation {gone} of `{name}`, is gone",
                cause="no folder lies there, or the links to it lead elsewhere than was recorded",
                hint=f"put it back there, or `envforge rebuild {name} --fresh` builds a generation from its profile",
            )
        if gone is not None:
            raise EnvforgeError(
                "generation-missing",
                f"the folder of generation {gone} of `{name}`, which is in use, is gone",
                cause=f"`{home.prefix(name, gone)}` is no folder",
                hint=f"`envforge rebuild {name}` builds it anew from its lock, `envforge rollback {name}` goes back to "
                "the one before",
            )
        raise EnvforgeError(
            "no-generation",
            f"no generation of `{name}` is in use",
            cause="no build of it has come to its end, or the link was changed by hand",
            hint=f"`envforge history {name}` says what happened, `envforge create` builds it",
        )
    return generation, home.prefix(name, generation).resolve()


def in_use(home: Home, name: str) -> int:
    """The generation in use, whose folder may be gone. Raises UsageError, EnvforgeError ``no-generation``."""
    from .generations import linked  # noqa: PLC0415 - who only looks for the path asks no further

    number = linked(home, require(home, name))
    if number is None:
        raise EnvforgeError(
            "no-generation",
            f"no generation of `{name}` is in use",
            hint=f"`envforge history {name}` says what happened, `envforge create` builds it",
        )
    return number
