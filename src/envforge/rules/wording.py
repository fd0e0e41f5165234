"""How guards and causes are called, in messages and in evidence."""

from __future__ import annotations

from typing import Any

from envforge.model.profile import Forbid, Guard, Hold, Keep, Symbol
from envforge.model.state import Distribution, shown

from .because import Arrival

ONE_CUDA_MAJOR = "one CUDA major"
CONSISTENT_METADATA = "consistent metadata"
WHOLE_DISTRIBUTIONS = "no partial or clobbered distribution"
"""The guards that are always on."""


def guard_text(guard: Guard) -> str:
    """The short text by which findings and verdicts name a guard: ``keep torch, torchvision``."""
    match guard:
        case Keep(names=names):
            return f"keep {', '.join(names)}"
        case Hold(requirement=requirement):
            return f"hold {requirement}"
        case Forbid(patterns=patterns):
            return f"forbid {', '.join(patterns)}"
        case Symbol(symbol=symbol, library=library):
            return f"symbol {symbol} in {library}"
        case _:
            message = f"not a kind of guard: {guard!r}"
            raise TypeError(message)


def guard_evidence(guard: Guard) -> dict[str, Any]:
    """``guard``, and where given ``because`` and ``reference``, as they stand in the profile."""
    said = {"because": guard.because, "reference": guard.reference}
    return {"guard": guard_text(guard)} | {key: value for key, value in said.items() if value}


def cause_evidence(arrival: Arrival) -> dict[str, Any]:
    """``came_with``: the step; ``cause``: why, in words; ``forced_by``: the same in parts."""
    because = arrival.because
    said: dict[str, Any] = {"came_with": arrival.step} if arrival.step else {}
    if because is not None:
        said["cause"] = str(because)
        said["forced_by"] = {
            "distribution": because.distribution,
            "version": because.version,
            "requirement": because.requirement,
            "via": list(because.via),
            "guard": because.guard,
        }
    return said


def called(distribution: Distribution) -> str:
    """```torch` 2.7.1+cu126``."""
    return f"`{shown(distribution.name)}` {distribution.version}"


def cause(arrival: Arrival) -> str:
    """``: `vllm` 0.10.0 requires `transformers>=4.53.2```, or nothing where no cause is known."""
    because = arrival.because
    if because is None:
        return ""
    if because.guard:
        return f": a guard constrains it to `{because.requirement}`"
    if because.distribution is None:
        return f": step `{arrival.step}` asks for `{because.requirement}`"
    return f": `{because.distribution}` {because.version} requires `{because.requirement}`"


def below_site(path: str) -> str:
    """The path inside site-packages; a path elsewhere in the prefix stays as it is."""
    return path.partition("site-packages/")[2] or path


def reason(guard: Guard) -> str:
    """`` (why the guard is there)``, or nothing."""
    return f" ({guard.because})" if guard.because else ""
