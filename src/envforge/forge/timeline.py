"""What was installed after each step, and what the rules said of it: predicted in a plan, found in a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from envforge.model.finding import Finding, Severity
from envforge.model.native import Compiled
from envforge.model.plan import Because, GuardVerdict
from envforge.model.profile import Profile
from envforge.model.state import Observation, State
from envforge.rules.context import Context, Moment
from envforge.rules.judge import judge
from envforge.rules.verdicts import over_time


class Timeline:
    """``moments[0]`` is the base. ``findings`` stand now, each naming the step after which it was first there.

    ``cards`` and ``wheels`` as in a `Context`.
    """

    def __init__(
        self,
        profile: Profile,
        markers: Mapping[str, str],
        substitutes: Mapping[str, str],
        *,
        base: State,
        observation: Observation | None = None,
        cards: tuple[str, ...] = (),
        wheels: Mapping[str, tuple[Compiled, ...]] | None = None,
    ) -> None:
        self._profile = profile
        self._markers = markers
        self._substitutes = substitutes
        self._cards = cards
        self._wheels = wheels or {}
        self._findings: dict[tuple[str, ...], Finding] = {}
        self.moments: list[Moment] = []
        self.judged: list[tuple[str | None, tuple[Finding, ...]]] = []
        self.add(Moment(step=None, state=base, observation=observation), {})

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    def add(self, moment: Moment, causes: Mapping[str, Because]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Judge ``moment``; returns what opened and what healed against the moment before.

        ``causes``: canonical name -> why it changed in this step, told with a finding about it.
        """
        self.moments.append(moment)
        context = Context(
            profile=self._profile,
            moments=tuple(self.moments),
            markers=self._markers,
            substitutes=self._substitutes,
            cards=self._cards,
            wheels=self._wheels,
        )
        now: dict[tuple[str, ...], Finding] = {}
        for found in judge(context):
            known = self._findings.get(found.key)
            cause = causes.get(found.subject)
            if known is not None and known.severity is found.severity:
                now[found.key] = replace(found, step=known.step, evidence={**known.evidence, **found.evidence})
            elif cause is not None:
                now[found.key] = replace(found, evidence={"because": str(cause), **found.evidence})
            else:
                now[found.key] = found
        opens = tuple(found for key, found in now.items() if _counts(found) and not _counts(self._findings.get(key)))
        heals = tuple(found for key, found in self._findings.items() if _counts(found) and not _counts(now.get(key)))
        self._findings = now
        self.judged.append((moment.name, tuple(now.values())))
        return opens, heals

    def verdicts(self) -> tuple[GuardVerdict, ...]:
        return over_time(self._profile, self.judged, self.moments[-1])

    def copy(self) -> Timeline:
        """One that goes on by itself from here."""
        other = object.__new__(Timeline)
        other.__dict__.update(self.__dict__)
        other.moments, other.judged = list(self.moments), list(self.judged)
        return other


def _counts(finding: Finding | None) -> bool:
    return finding is not None and finding.severity is not Severity.INFO
