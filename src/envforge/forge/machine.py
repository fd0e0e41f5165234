"""The facts of this host, and of another one that were saved to a file."""

from __future__ import annotations

from pathlib import Path

from envforge.model.errors import UsageError
from envforge.model.machine import Machine
from envforge.model.result import Result
from envforge.probe import machine as probe

from .shop import Shop
from .writing import write


def machine(shop: Shop, *, save: Path | None = None) -> Result[Machine]:
    """Look at this host; with ``save`` also write what was found there, as JSON for `load`.

    Raises EnvforgeError ``not-writable`` where the file cannot be written.
    """
    found = probe.look(shop.home.root)
    if save is not None:
        write(save, probe.dumps(found))
    return Result(command="machine", data=found)


def load(path: Path) -> Machine:
    """A machine that `envforge machine --save` wrote; raises UsageError ``invalid-machine`` or ``newer-record``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "invalid-machine",
            f"`{path}` is no machine file",
            cause=getattr(error, "strerror", None) or str(error),
            hint="`envforge machine --save FILE` writes one",
        ) from error
    return probe.loads(text, str(path))
