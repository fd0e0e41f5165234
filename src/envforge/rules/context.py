"""What every rule gets: the profile, and what was installed after each step so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from envforge.model.native import Compiled, Native
from envforge.model.plan import Because
from envforge.model.profile import DEFAULT_INDEX, Action, Hold, Profile, Step
from envforge.model.state import Observation, State

from .requirements import parse

REQUIRING = frozenset({Action.INSTALL, Action.BACKFILL, Action.PIN})
"""The actions whose arguments are requirements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is installed after ``step`` (None: before any). ``observation`` is None where it is only predicted,
    ``native`` where nobody looked at compiled files.
    """

    step: Step | None
    state: State
    observation: Observation | None = None
    native: Native | None = None

    @property
    def name(self) -> str | None:
        """The name of the step."""
        return self.step.name if self.step is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """``moments[0]`` is the base before any step, ``moments[-1]`` is judged; in a plan no moment has an observation.

    ``markers`` is the whole marker environment (PEP 508) of the environment's Python: a variable that is left out is
    read from the Python that runs envforge. ``substitutes``: index name -> name of the index that stands in for it.
    ``cards``: compute capability of each GPU of the machine that fits the profile; ``wheels``: sha256 of a wheel -> its
    files with GPU code, of those that were installed before.
    """

    profile: Profile
    moments: tuple[Moment, ...]
    markers: Mapping[str, str]
    substitutes: Mapping[str, str]
    cards: tuple[str, ...] = ()
    wheels: Mapping[str, tuple[Compiled, ...]] = field(default_factory=dict)
    explained: dict[int, Mapping[str, Because]] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Position of a moment -> the causes of its changes, filled where a finding asks for them."""

    @property
    def now(self) -> Moment:
        """The moment that is judged."""
        return self.moments[-1]


def requested(context: Context) -> tuple[str, ...]:
    """The requirements that steps up to the judged moment asked for, with their extras, as written."""
    return requested_by(moment.step for moment in context.moments)


def requested_by(steps: Iterable[Step | None]) -> tuple[str, ...]:
    """The requirements that ``steps`` asked for, in order; an ``uninstall`` takes back what it removes."""
    asked: list[tuple[str | None, str]] = []
    for step in steps:
        if step is None:
            continue
        if step.action is Action.UNINSTALL:
            asked = [(name, text) for name, text in asked if name not in step.arguments]
        elif step.action in REQUIRING:
            asked.extend((_name(text), text) for text in step.arguments)
    return tuple(text for _, text in asked)


def _name(text: str) -> str | None:
    wanted = parse(text)
    return wanted.name if wanted is not None else None


def hold_constraints(profile: Profile) -> Mapping[str, str]:
    """Canonical name -> requirement, for every ``hold`` that is given to the resolver as a constraint."""
    return {
        wanted.name: guard.requirement
        for guard in profile.guards
        if isinstance(guard, Hold) and guard.constrain and (wanted := parse(guard.requirement)) is not None
    }


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether the canonical ``name`` is one of ``patterns``, each a canonical name or an ``fnmatch`` pattern."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def index_names_allowed(profile: Profile, name: str, substitutes: Mapping[str, str]) -> frozenset[str]:
    """The indexes from which the distribution ``name`` (canonical) may come.

    An index with ``packages`` serves only these, and these come only from such an index; every other name comes from
    the indexes without ``packages``. Where the configuration substitutes an index, its substitute may serve too.
    """
    claiming = [index.name for index in profile.indexes if index.packages and matches(name, index.packages)]
    names = claiming or [index.name for index in profile.indexes if not index.packages]
    if not profile.indexes:
        names = [DEFAULT_INDEX]
    return with_substitutes(names, substitutes)


def with_substitutes(names: Iterable[str], substitutes: Mapping[str, str]) -> frozenset[str]:
    """``names`` and the indexes that stand in for them."""
    chosen = frozenset(names)
    return chosen | {substitutes[name] for name in chosen if name in substitutes}
