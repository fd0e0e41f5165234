"""`seal` and `unseal`: the generation in use becomes read-only, or can be changed by hand again."""

from __future__ import annotations

from envforge.engines.seals import Tally
from envforge.model.errors import EnvforgeError
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.views import Sealed
from envforge.store.locking import hold
from envforge.system import clock

from . import sealing
from .generations import sealed
from .path import current, require
from .shop import Shop


def seal(shop: Shop, name: str) -> Result[Sealed]:
    """Make the generation in use read-only. What a killed command left half open is closed, too.

    Raises UsageError ``no-such-environment``; EnvforgeError ``no-generation``, ``locked``, or ``not-sealable`` where it
    was adopted; LeftoverError ``seal-incomplete`` naming what cannot be changed.
    """
    home = shop.home
    with hold(home, require(home, name), f"seal {name}"):
        home.refuse_foreign(name)
        generation, place = current(home, name)
        if home.adopted(name, generation) is not None:
            raise EnvforgeError(
                "not-sealable",
                f"`{name}` was adopted: the permissions of `{place}` are not envforge's to change",
                cause="`remove` leaves every file of it as it is, so nothing would open it again",
                hint=f"`envforge rebuild {name} --fresh` builds a generation that can be sealed",
            )
        started = clock.monotonic()
        if sealed(home, name, generation) and sealing.is_whole(home, name, generation):
            return _result("seal", name, generation, None, started)
        shop.tell(Working(what=f"compiling bytecode of {name}"))
        tally = sealing.close(shop, name, generation)
        shop.tell(Working(what=None))
        return _result("seal", name, generation, tally, started)


def unseal(shop: Shop, name: str) -> Result[Sealed]:
    """Give the generation in use back to whoever changes it by hand; raises as `seal` does."""
    home = shop.home
    with hold(home, require(home, name), f"unseal {name}"):
        home.refuse_foreign(name)
        generation, _ = current(home, name)
        started = clock.monotonic()
        tally = sealing.open_(home, name, generation) if sealed(home, name, generation) else None
        return _result("unseal", name, generation, tally, started)


def _result(command: str, name: str, generation: int, tally: Tally | None, started: float) -> Result[Sealed]:
    """``tally`` None: nothing was to be done."""
    counted = tally or Tally()
    data = Sealed(
        environment=name,
        generation=generation,
        sealed=command == "seal",
        changed=tally is not None,
        files=counted.files,
        folders=counted.folders,
        shared=counted.shared,
        seconds=clock.monotonic() - started,
    )
    return Result(command=command, data=data)
