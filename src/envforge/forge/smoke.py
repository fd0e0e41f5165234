"""`smoke`: the profile's checks in environments that are in use, and what they generate side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Finding
from envforge.model.profile import Profile
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.model.smoked import Beside, Compared, Proved, SmokeView
from envforge.probe import prefix as prefixes
from envforge.probe import processes

from . import inside, proof
from .damage import damage
from .known import Known
from .path import current
from .profiles import recorded
from .shop import Shop

_BY = "the smoke checks"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    name: str
    generation: int
    prefix: Path
    profile: Profile


def smoke(shop: Shop, names: Sequence[str], *, gpu: str | None = None) -> Result[SmokeView]:
    """Run the smoke checks of each environment, one after the other; what fails is a finding.

    ``gpu``: the cards that all of them see, see `choosing.sight`. Raises UsageError ``no-smoke-checks``,
    ``no-such-environment`` or ``usage``, EnvforgeError ``no-generation``, ``generation-missing`` or ``gpu-not-there``.
    """
    places = [_place(shop, name) for name in dict.fromkeys(names)]
    proved: list[Proved] = []
    findings: list[Finding] = []
    for place in places:
        if len(places) > 1:
            shop.tell(Note(text=f"{place.name}, generation {place.generation}"))
        one, found = _prove(shop, place, gpu)
        proved.append(one)
        findings += (
            found if len(places) == 1 else [replace(each, message=f"{place.name}: {each.message}") for each in found]
        )
    return Result(
        command="smoke",
        data=SmokeView(environments=tuple(proved), compared=compared(proved)),
        findings=tuple(findings),
    )


def _place(shop: Shop, name: str) -> _Place:
    generation, prefix = current(shop.home, name)
    profile = recorded(shop.home, name, generation)
    if not profile.smoke:
        raise UsageError(
            "no-smoke-checks",
            f"the profile of `{name}` has no smoke checks",
            hint=f"add them under `smoke`, then `envforge update {name}`",
        )
    return _Place(name=name, generation=generation, prefix=prefix, profile=profile)


def _prove(shop: Shop, place: _Place, gpu: str | None) -> tuple[Proved, tuple[Finding, ...]]:
    """Run the checks of one environment, and see what they did to it besides."""
    before = prefixes.look(place.prefix)
    running = {each.pid for each in processes.using(place.prefix)}
    ran = proof.run(shop, place.prefix, place.profile, _log(shop, place), gpu=gpu)
    proof.remember(shop, place.name, place.generation, ran)
    after = prefixes.look(place.prefix)
    hurt = damage(
        _BY,
        place.prefix,
        before.files,
        after.files,
        before=before.state,
        after=after.state,
        profile=place.profile,
        known=Known(shop.settings.cache / "known"),
    )
    hit = inside.poisoned(shop.home, place.name, place.generation, before.files)
    shared = {"shared_with": list(hit.environments)} if hit is not None else {}
    for each in processes.using(place.prefix):
        if each.pid not in running:
            text = f"process {each.pid} that {_BY} started still runs: {' '.join(each.argv)}"
            shop.tell(Note(text=text, level="warning"))
    proved = Proved(
        environment=place.name,
        generation=place.generation,
        profile=place.profile.name,
        cards=ran.sight.names,
        checks=ran.results,
    )
    mend = f"`envforge repair {place.name}` puts it right; let the check write to files of its own"
    hurt = tuple(replace(each, evidence={**each.evidence, **shared}, remedy=mend) for each in hurt)
    return proved, (*proof.findings(ran.results), *hurt)


def _log(shop: Shop, place: _Place) -> Path | None:
    """Where what the checks say is kept; None where this user cannot write."""
    try:
        return shop.home.make_folder(shop.home.record(place.name, place.generation) / "logs") / "smoke.log"
    except EnvforgeError:
        return None


def compared(proved: Iterable[Proved]) -> tuple[Compared, ...]:
    """What was asked of more than one environment, by model and prompt."""
    answers: dict[tuple[str, str], list[Beside]] = {}
    for one in proved:
        for check in one.checks:
            asked = check.smoke.generate
            if asked is not None and check.generated is not None:
                beside = Beside(environment=one.environment, engine=asked.engine.value, generated=check.generated)
                answers.setdefault((asked.model, asked.prompt), []).append(beside)
    return tuple(
        Compared(
            model=model,
            prompt=prompt,
            equal=len({each.generated.text for each in several}) == 1,
            answers=tuple(several),
        )
        for (model, prompt), several in answers.items()
        if len({each.environment for each in several}) > 1
    )
