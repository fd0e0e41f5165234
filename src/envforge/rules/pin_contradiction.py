"""A pin or hold of the profile excludes every version that an installed distribution's metadata accepts."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Action, Hold

from .context import Context, requested
from .requirements import Edge, Wanted, accepts, applies, edges, parse
from .specifiers import overlap
from .wording import CONSISTENT_METADATA


def pin_contradiction(context: Context) -> Iterator[Finding]:
    """One finding for every owner and every pin that it contradicts; the subject is the owner.

    A ``hold`` counts from the start, a ``pin`` from its step on.
    """
    pins = _pins(context)
    if not pins:
        return
    state = context.now.state
    told: set[tuple[str, str, str]] = set()
    for edge in edges(state, requested(context), context.markers):
        for wanted, sources in pins.get(edge.wanted.name, {}).values():
            key = (edge.owner, edge.wanted.text, wanted.bounds)
            found = state.get(edge.wanted.name)
            both = found is not None and all(accepts(each.bounds, found.version) for each in (wanted, edge.wanted))
            # Metadata that accepts nothing at all is no fault of the pin.
            if key in told or both or overlap(wanted.bounds, edge.wanted.bounds) or not overlap(edge.wanted.bounds, ""):
                continue
            told.add(key)
            yield _finding(edge, wanted, sources)


def _pins(context: Context) -> dict[str, dict[str, tuple[Wanted, list[str]]]]:
    """Canonical name -> bounds -> the requirement and who asks for it."""
    texts = [(guard.requirement, "the guard `hold`") for guard in context.profile.guards if isinstance(guard, Hold)] + [
        (text, f"step `{moment.step.name}`")
        for moment in context.moments
        if moment.step is not None and moment.step.action is Action.PIN
        for text in moment.step.arguments
    ]
    found: dict[str, dict[str, tuple[Wanted, list[str]]]] = {}
    for text, source in texts:
        wanted = parse(text)
        if wanted is None or not wanted.bounds or not applies(wanted, context.markers):
            continue
        _, sources = found.setdefault(wanted.name, {}).setdefault(wanted.bounds, (wanted, []))
        if source not in sources:
            sources.append(source)
    return found


def _finding(edge: Edge, pin: Wanted, sources: list[str]) -> Finding:
    owner = f"`{edge.owner}` {edge.version}"
    return Finding(
        id="pin-contradiction",
        severity=Severity.ERROR,
        subject=edge.owner,
        aspect=f"{edge.wanted.text} against {pin.text}",
        message=f"`{pin.text}` ({' and '.join(sources)}) excludes every version that {owner} accepts: "
        f"it requires `{edge.wanted.text}`",
        evidence={
            "guard": CONSISTENT_METADATA,
            "pin": pin.text,
            "sources": sources,
            "owner": edge.owner,
            "version": edge.version,
            "requirement": edge.wanted.text,
            "required": edge.wanted.name,
        },
        remedy=f"widen `{pin.text}`, or hold `{pin.text}` with `constrain: true` before `{edge.owner}` is chosen, "
        "so that a version of it is taken that fits",
    )
