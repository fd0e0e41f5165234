"""What became of every guard over the steps: holds, open or unknown; opened and healed by which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from envforge.model.finding import Finding, Severity
from envforge.model.plan import GuardVerdict, Verdict
from envforge.model.profile import Profile, Symbol

from .context import Context, Moment
from .judge import judge
from .wording import CONSISTENT_METADATA, ONE_CUDA_MAJOR, WHOLE_DISTRIBUTIONS, guard_text

Judged = tuple[str | None, tuple[Finding, ...]]
"""The name of a step (None: before any) and what was found after it."""

_UNKNOWN_SYMBOL = "symbols can be judged only in what is built"
_UNKNOWN_FILES = "files can be judged only after the step"


def verdicts(context: Context) -> tuple[GuardVerdict, ...]:
    """One verdict for every guard of the profile, then for those that are always on, over all moments."""
    moments = context.moments
    judged = [
        (moments[position - 1].name, judge(replace(context, moments=moments[:position])))
        for position in range(1, len(moments) + 1)
    ]
    return over_time(context.profile, judged, context.now)


def over_time(profile: Profile, judged: Sequence[Judged], now: Moment) -> tuple[GuardVerdict, ...]:
    """The same from findings that are known already, one entry for every moment in order.

    Only an error opens a guard. ``now`` is the last moment: whether its files were looked at, and the compiled ones.
    """
    guards = dict.fromkeys(guard_text(guard) for guard in profile.guards)
    symbols = {guard_text(guard) for guard in profile.guards if isinstance(guard, Symbol) and now.native is None}
    files = {} if now.observation is not None else {WHOLE_DISTRIBUTIONS: _UNKNOWN_FILES}
    unknown = dict.fromkeys(symbols, _UNKNOWN_SYMBOL) | files
    return tuple(
        GuardVerdict(guard=guard, verdict=Verdict.UNKNOWN, because=unknown[guard])
        if guard in unknown
        else _verdict(guard, judged)
        for guard in (*guards, ONE_CUDA_MAJOR, CONSISTENT_METADATA, WHOLE_DISTRIBUTIONS)
    )


def _verdict(guard: str, judged: Sequence[Judged]) -> GuardVerdict:
    opened = healed = because = None
    open_now = False
    for step, findings in judged:
        against = [each for each in findings if each.severity is Severity.ERROR and each.evidence.get("guard") == guard]
        if against and not open_now:
            opened, healed = step, None
            because = against[0].evidence.get("cause") or against[0].message
        elif open_now and not against:
            healed = step
        open_now = bool(against)
    verdict = Verdict.OPEN if open_now else Verdict.HOLDS
    return GuardVerdict(guard=guard, verdict=verdict, because=because, opened=opened, healed=healed)
