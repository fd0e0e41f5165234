"""Two CUDA majors among what is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envforge.model.finding import Finding, Severity
from envforge.model.state import Distribution, State

from .because import arrival
from .context import Context
from .data import SUFFIXLESS_CUDA
from .wording import ONE_CUDA_MAJOR, called, cause, cause_evidence

# nvidia-nccl-cu12, nvidia-cublas-cu117, nvidia-dali-cuda120; cupy-cuda12x, cupy-cuda117
_SUFFIX = re.compile(r"(?:nvidia-.+-cu(?:da)?|cupy-cuda)(\d\d)\d?x?")
# torch 2.7.1+cu126, flash-attn 2.8.3+cu12torch2.7
_LOCAL = re.compile(r"cu(\d\d)\d{0,2}(?!\d)")
_SHOWN = 3


def cuda_major(distribution: Distribution) -> int | None:
    """The CUDA major that a distribution is for, by its name or local version; None where these say nothing."""
    if (suffix := _SUFFIX.fullmatch(distribution.name)) is not None:
        return int(suffix[1])
    if (local := _LOCAL.match(distribution.version.partition("+")[2])) is not None:
        return int(local[1])
    return SUFFIXLESS_CUDA.get(distribution.name)


def cuda_mixed(context: Context) -> Iterator[Finding]:
    """At most one finding, with the subject ``cuda``; the major with the fewest distributions is the intruder."""
    majors = _majors(context.now.state)
    if len(majors) < 2:
        return
    order = sorted(majors)
    intruder = min(order, key=lambda major: (len(majors[major]), -major))
    came = arrival(context, majors[intruder][0].name)
    yield Finding(
        id="cuda-mixed",
        severity=Severity.ERROR,
        subject="cuda",
        message=f"installed together: {' and '.join(_shown(major, majors[major]) for major in order)}"
        + (f"; {called(majors[intruder][0])} came{cause(came)}" if came.because else ""),
        evidence={
            "guard": ONE_CUDA_MAJOR,
            "majors": {str(major): [f"{each.name} {each.version}" for each in majors[major]] for major in order},
        }
        | cause_evidence(came),
        remedy=f"keep what needs CUDA {intruder} out, or choose builds of one CUDA major for all of it",
    )


def _majors(state: State) -> Mapping[int, list[Distribution]]:
    found: dict[int, list[Distribution]] = {}
    for name in sorted(state):
        major = cuda_major(state[name])
        if major is not None:
            found.setdefault(major, []).append(state[name])
    return found


def _shown(major: int, distributions: list[Distribution]) -> str:
    names = ", ".join(called(each) for each in distributions[:_SHOWN])
    more = len(distributions) - _SHOWN
    return f"CUDA {major} ({names}{f' and {more} more' if more > 0 else ''})"
