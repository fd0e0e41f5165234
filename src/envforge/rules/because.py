"""Which requirement of which distribution forced a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from envforge.model.plan import Because
from envforge.model.profile import Step
from envforge.model.state import Distribution, State

from .context import REQUIRING, Context, hold_constraints, requested_by
from .diff import changes, differs
from .requirements import Edge, Wanted, accepts, applies, edges, parse

_FAR = 1_000_000


def explain(
    before: State,
    after: State,
    step: Step,
    *,
    requested_before: Sequence[str],
    markers: Mapping[str, str],
    constraints: Mapping[str, str],
) -> Mapping[str, Because]:
    """The cause of every change that has one, by canonical name.

    ``requested_before``: what earlier steps asked for (for its extras); ``constraints``: canonical name -> the
    requirement that a guard gave to the resolver. What a step removes has no cause but the step.

    A replaced distribution is explained by, in this order: the step's own requirement that excludes the old version;
    an active requirement that excludes it, first of what came with this step; a constraint that excludes it; the old
    version's own requirement that what is installed now does not satisfy; and where nothing excludes the old
    version, by what asks for it at all, as for an added one.
    """
    changed = {change.name for change in changes(before, after)}
    asked = _asked(step, markers)
    texts = (*requested_before, *(step.arguments if step.action in REQUIRING else ()))
    web = _Web(edges(after, texts, markers), asked, changed)
    found: dict[str, Because] = {}
    for name in sorted(changed & after.keys()):
        old = before.get(name)
        cause = None
        if old is not None:
            cause = (
                web.excluding(old)
                or _constrained(old, step, constraints, markers)
                or _outgrown(old, after, requested_before, markers)
            )
        cause = cause or web.bringing(name)
        if cause is not None:
            found[name] = cause
    return found


def _asked(step: Step, markers: Mapping[str, str]) -> dict[str, list[Wanted]]:
    """The step's own active requirements, by canonical name, in order."""
    found: dict[str, list[Wanted]] = {}
    for text in step.arguments if step.action in REQUIRING else ():
        wanted = parse(text)
        if wanted is not None and applies(wanted, markers):
            found.setdefault(wanted.name, []).append(wanted)
    return found


class _Web:
    """The active requirements after a step, and how far each owner is from what the step asked for."""

    def __init__(self, found: Iterable[Edge], asked: Mapping[str, list[Wanted]], changed: set[str]) -> None:
        self._asked = asked
        self._changed = changed
        self._onto: dict[str, list[Edge]] = {}
        outgoing: dict[str, list[str]] = {}
        for edge in found:
            if edge.owner != edge.wanted.name:
                self._onto.setdefault(edge.wanted.name, []).append(edge)
                outgoing.setdefault(edge.owner, []).append(edge.wanted.name)
        self._chain: dict[str, tuple[str, ...]] = {name: (name,) for name in asked}
        queue = list(asked)
        for owner in queue:  # grows while it is walked: breadth first
            for name in outgoing.get(owner, ()):
                if name not in self._chain:
                    self._chain[name] = (*self._chain[owner], name)
                    queue.append(name)

    def excluding(self, old: Distribution) -> Because | None:
        """What does not accept the old version."""
        for wanted in self._asked.get(old.name, ()):
            if not accepts(wanted.bounds, old.version):
                return Because(requirement=wanted.text)
        against = [edge for edge in self._onto.get(old.name, ()) if not accepts(edge.wanted.bounds, old.version)]
        edge = min(against, key=lambda edge: (edge.owner not in self._changed, *self._rank(edge)), default=None)
        return self._because(edge)

    def bringing(self, name: str) -> Because | None:
        """What asks for it at all: the step itself, else the requirement nearest to what the step asked for."""
        if name in self._asked:
            return Because(requirement=self._asked[name][0].text)
        edge = min(self._onto.get(name, ()), key=self._rank, default=None)
        return self._because(edge)

    def _rank(self, edge: Edge) -> tuple[int, bool, str, str]:
        distance = len(self._chain[edge.owner]) if edge.owner in self._chain else _FAR
        return (distance, edge.owner not in self._changed, edge.owner, edge.wanted.text)

    def _because(self, edge: Edge | None) -> Because | None:
        if edge is None:
            return None
        chain = self._chain.get(edge.owner, ())
        return Because(
            requirement=edge.wanted.text,
            distribution=edge.owner,
            version=edge.version,
            via=chain if len(chain) > 1 else (),
        )


def _constrained(
    old: Distribution, step: Step, constraints: Mapping[str, str], markers: Mapping[str, str]
) -> Because | None:
    """The constraint, of a guard or of the step, that does not accept the old version."""
    given = [constraints[old.name]] if old.name in constraints else []
    for text, guard in (*((text, True) for text in given), *((text, False) for text in step.constraints)):
        wanted = parse(text)
        if wanted is None or wanted.name != old.name or not applies(wanted, markers):
            continue
        if not accepts(wanted.bounds, old.version):
            return Because(requirement=wanted.text, guard=guard)
    return None


def _outgrown(old: Distribution, after: State, requested: Sequence[str], markers: Mapping[str, str]) -> Because | None:
    """The old version's own requirement that what is installed now does not satisfy, so that it could not stay."""
    for edge in edges({old.name: old}, requested, markers):
        now = after.get(edge.wanted.name)
        if now is not None and edge.wanted.name != old.name and not accepts(edge.wanted.bounds, now.version):
            return Because(requirement=edge.wanted.text, distribution=old.name, version=old.version)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """When a distribution became what it is: ``step`` is None where it was there before any step."""

    step: str | None
    because: Because | None


def arrival(context: Context, name: str) -> Arrival:
    """After which step the distribution ``name`` became what it is (or went), and through what."""
    moments = context.moments
    for position in range(len(moments) - 1, 0, -1):
        old, new = moments[position - 1].state.get(name), moments[position].state.get(name)
        same = old is None and new is None if old is None or new is None else not differs(old, new)
        step = moments[position].step
        if same or step is None:
            continue
        if position not in context.explained:
            context.explained[position] = explain(
                moments[position - 1].state,
                moments[position].state,
                step,
                requested_before=requested_by(moment.step for moment in moments[:position]),
                markers=context.markers,
                constraints=hold_constraints(context.profile),
            )
        return Arrival(step=step.name, because=context.explained[position].get(name))
    return Arrival(step=None, because=None)
