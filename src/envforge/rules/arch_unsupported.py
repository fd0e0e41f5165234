"""GPU code for no card that it is meant to run on: ``no kernel image`` when it is first used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.version import InvalidVersion, Version

from envforge.model.finding import Finding, Severity
from envforge.model.native import Compiled
from envforge.model.profile import Release
from envforge.model.state import Distribution
from envforge.model.state import shown as shown_name

from .cards import Card, admitted, card, fits, shown, within
from .context import Context
from .wording import below_site, called

_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cards:
    """``here``: of the machine, as far as they fit the profile; ``meant``: all that the profile is for.

    ``wanted``: the profile is for cards; one that is for any machine may have no use for those that are there.
    """

    here: tuple[Card, ...]
    meant: tuple[Card, ...]
    wanted: bool

    @property
    def all(self) -> tuple[Card, ...]:
        return tuple(sorted({*self.here, *self.meant}))

    def severity(self, unfit: Sequence[Card]) -> Severity:
        """An error where a card of this machine cannot run it, or none that the profile is for."""
        lost = any(each in self.here for each in unfit) or len(unfit) == len(self.all)
        return Severity.ERROR if lost and self.wanted else Severity.WARNING


def arch_unsupported(context: Context) -> Iterator[Finding]:
    """At most one error or warning, and one info, a distribution; nothing without a card or a ``gpu`` block.

    An error: none of a distribution's objects with GPU code fits, or not one that the release calls essential; a
    warning where the profile is for any machine. Others that do not fit are told as info. What is not installed yet is
    judged by its wheel, where that was installed from the cache before, else by what the profile knows of the release.
    """
    cards = _Cards(
        here=tuple(sorted({card(each) for each in context.cards})),
        meant=admitted(context.profile),
        wanted=context.profile.gpu is not None,
    )
    if not cards.all:
        return
    known = _known(context)
    for name, item in context.now.state.items():
        release = _release(context.profile.releases, item)
        objects = known.get(name)
        if objects:
            yield from _judged(item, objects, release, cards)
        elif objects is None and release is not None and release.compute_capability:
            yield from _by_release(item, release, cards)


def _known(context: Context) -> Mapping[str, Sequence[Compiled]]:
    """Distribution -> its objects with GPU code; one of which nothing is known is not in it."""
    if context.now.native is None:
        wheels = context.wheels
        state = context.now.state.values()
        return {item.name: wheels[item.sha256] for item in state if item.sha256 is not None and item.sha256 in wheels}
    found: dict[str, list[Compiled]] = {name: [] for name in context.now.state}
    for each in context.now.native.objects:
        if each.code and each.owner in found:
            found[each.owner].append(each)
    return found


def _release(releases: Iterable[Release], item: Distribution) -> Release | None:
    """What is known of exactly this build: another local version has other code."""
    try:
        return next(
            (each for each in releases if each.name == item.name and Version(each.version) == Version(item.version)),
            None,
        )
    except InvalidVersion:
        return None


def _judged(
    item: Distribution, objects: Sequence[Compiled], release: Release | None, cards: _Cards
) -> Iterator[Finding]:
    essential = [each for each in objects if release is not None and _is_essential(each, release)]
    unfit = [each for each in cards.all if not any(fits(one.code, each) for one in objects)]
    lacking = [each for each in cards.all if each not in unfit and not all(fits(one.code, each) for one in essential)]
    if unfit:
        yield _finding(item, cards, unfit, objects, f"{called(item)} has no GPU code for {_capabilities(unfit)}")
    if lacking:
        without = [one for one in essential if not all(fits(one.code, each) for each in lacking)]
        what = f"{called(item)}: `{_names(without)}`, without which it is of no use, has no code"
        yield _finding(item, cards, lacking, without, f"{what} for {_capabilities(lacking)}", aspect="essential")
    others = [
        one
        for one in objects
        if one not in essential and not all(fits(one.code, each) for each in cards.all if each not in unfit)
    ]
    if others and len(unfit) < len(cards.all):
        yield _some(item, others, [each for each in cards.all if each not in unfit])


def _is_essential(each: Compiled, release: Release) -> bool:
    return any(fnmatchcase(each.path.rpartition("/")[2], pattern) for pattern in release.essential)


def _finding(
    item: Distribution,
    cards: _Cards,
    unfit: Sequence[Card],
    objects: Sequence[Compiled],
    message: str,
    *,
    aspect: str | None = None,
) -> Finding:
    there = sorted({code for each in objects for code in each.code}, key=lambda code: (code.kind, code.arch))
    return Finding(
        id="arch-unsupported",
        severity=cards.severity(unfit),
        subject=shown_name(item.name),
        aspect=aspect,
        message=f"{message}; there is code for {', '.join(code.name for code in there)}",
        evidence={
            "version": item.version,
            "cards": [shown(each) for each in unfit],
            "code": [code.name for code in there],
            "files": [below_site(each.path) for each in objects[:_SHOWN]],
        },
        remedy="choose a release or a build that has code for the card, or another card",
    )


def _some(item: Distribution, others: Sequence[Compiled], cards: Sequence[Card]) -> Finding:
    groups: dict[tuple[Compiled, ...], list[Card]] = {}
    for each in cards:
        unfit = tuple(one for one in others if not fits(one.code, each))
        if unfit:
            groups.setdefault(unfit, []).append(each)
    told = "; ".join(f"for {_capabilities(group)} not {_names(unfit)}" for unfit, group in groups.items())
    return Finding(
        id="arch-unsupported",
        severity=Severity.INFO,
        subject=shown_name(item.name),
        aspect="parts",
        message=f"{called(item)} has GPU code, but {told}",
        evidence={
            "version": item.version,
            "cards": [shown(each) for group in groups.values() for each in group],
            "files": {below_site(each.path): [code.name for code in each.code] for each in others},
        },
        remedy="nothing, unless what they do is needed there",
    )


def _by_release(item: Distribution, release: Release, cards: _Cards) -> Iterator[Finding]:
    unfit = [each for each in cards.all if not within(each, release.compute_capability)]
    if unfit:
        wanted = " or ".join(release.compute_capability)
        yield Finding(
            id="arch-unsupported",
            severity=cards.severity(unfit),
            subject=shown_name(item.name),
            message=f"{called(item)} has no GPU code for {_capabilities(unfit)}: it is for compute capability {wanted}",
            evidence={"version": item.version, "cards": [shown(each) for each in unfit], "wanted": wanted}
            | ({"reference": release.reference} if release.reference else {}),
            remedy="choose a release that is for the card, or another card",
        )


def _capabilities(values: Sequence[Card]) -> str:
    return f"compute capability {', '.join(map(shown, values))}"


def _names(objects: Sequence[Compiled]) -> str:
    names = [each.path.rpartition("/")[2] for each in objects]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
