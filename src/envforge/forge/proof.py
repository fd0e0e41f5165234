"""Smoke checks: each in a child process of its own group, with a time limit; a signal is a finding."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Device, Generate, Profile, Smoke, SmokeKind
from envforge.model.progress import Note, Working
from envforge.model.settings import Settings
from envforge.model.smoked import Kept, Smoked, SmokeResult
from envforge.store import smoked, snapshots
from envforge.system import clock, environ, process

from . import choosing, generating, inside
from .choosing import Sight
from .generating import Judged
from .shop import Shop

_MEND = "mend what it names, in the profile or in the check; nothing that was in use was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What the checks came to, and which cards they saw."""

    results: tuple[SmokeResult, ...]
    sight: Sight = field(default_factory=Sight)


def run(
    shop: Shop, prefix: Path, profile: Profile, log: Path | None, *, gpu: str | None = None, building: bool = False
) -> Ran:
    """Run every smoke check of the profile in the environment at ``prefix``; what they say is appended to ``log``.

    ``gpu``: the cards that they see, see `choosing.sight`, which is raised as. What needs a card is skipped where none
    is for it; and while ``building``, what needs a model of the profile that is not fetched: that takes an environment.
    """
    if not profile.smoke:
        return Ran(results=())
    seen = _sight(shop, profile, gpu)
    env = inside.variables(prefix, profile, shop.tell)
    results = []
    for smoke in profile.smoke:
        asked, missing = smoke.generate, None
        if asked is not None:
            asked, missing = generating.located(shop.home, profile, asked)
        why = missing if building else None
        if smoke.device is Device.CUDA and not seen.choices:
            why = seen.why or "no GPU was found"
        if why is not None:
            shop.tell(Note(text=f"smoke check {smoke.name}: skipped, {why}", level="warning"))
            results.append(SmokeResult(smoke=smoke, ok=False, ending="skipped", tail="", seconds=0.0, skipped=why))
            continue
        shop.tell(Working(what=f"smoke check {smoke.name}"))
        visible = {choosing.VISIBLE: ""} if smoke.device is Device.CPU else seen.variables
        result = _one(prefix, smoke, asked, {**env, **visible}, log, settings=shop.settings)
        shop.tell(Working(what=None))
        said = "ok" if result.ok else result.ending
        shop.tell(Note(text=f"smoke check {smoke.name}: {said}, {result.seconds:.1f} s"))
        results.append(result)
    return Ran(results=tuple(results), sight=seen)


def remember(shop: Shop, name: str, generation: int, ran: Ran) -> None:
    """Keep what the checks came to with the last snapshot, for the card; where this user cannot write, nothing is."""
    step = max(snapshots.numbers(shop.home, name, generation), default=0)
    entry = Smoked(
        card=ran.sight.first,
        card_name=next(iter(ran.sight.names), None),
        at=clock.now(),
        snapshot=f"{name}/{generation}.{step}",
        checks=tuple(
            Kept(
                name=each.smoke.name,
                ok=each.ok,
                ending=each.ending,
                skipped=each.skipped,
                generated=each.generated,
            )
            for each in ran.results
        ),
    )
    smoked.write(shop.home, name, generation, entry)


def findings(results: tuple[SmokeResult, ...]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            id="smoke-failed",
            severity=Severity.ERROR,
            subject=result.smoke.name,
            message=f"the smoke check `{result.smoke.name}` failed: {result.ending}",
            evidence={
                "kind": result.smoke.kind.value,
                "ending": result.ending,
                "tail": result.tail,
                **({"log": result.log} if result.log else {}),
            },
            remedy=result.remedy or _MEND,
        )
        for result in results
        if result.failed
    )


def _sight(shop: Shop, profile: Profile, gpu: str | None) -> Sight:
    """The cards; nobody is asked for them where no check cares."""
    if gpu is None and profile.gpu is None and all(smoke.device is not Device.CUDA for smoke in profile.smoke):
        return Sight()
    return choosing.sight(shop, profile, {**environ.variables(), **profile.variables}, gpu=gpu)


def _one(
    prefix: Path, smoke: Smoke, asked: Generate | None, env: Mapping[str, str], log: Path | None, *, settings: Settings
) -> SmokeResult:
    started = clock.monotonic()
    argv = _argv(prefix, smoke, env["PATH"])
    if argv is None:
        reason = f"`{smoke.arguments[0]}` is not found in the environment or on PATH"
        return SmokeResult(smoke=smoke, ok=False, ending=reason, tail="", seconds=0.0)
    try:
        # Not where the user stands: a `torch.py` there would be what is proved.
        with tempfile.TemporaryDirectory(prefix="envforge-smoke-") as folder:
            neutral = Path(folder)
            if asked is not None:
                argv = generating.ask(neutral, prefix, smoke, asked)
                env = {**env, **generating.variables(asked, settings)}
            completed = process.run(argv, env=env, cwd=neutral, timeout=smoke.timeout, log=log)
            if asked is not None:
                judged = generating.judge(neutral, asked, completed)
            else:
                judged = Judged(ok=completed.ok, ending=completed.ending())
    except OSError as error:
        return SmokeResult(smoke=smoke, ok=False, ending=f"cannot be started: {error}", tail="", seconds=0.0)
    return SmokeResult(
        smoke=smoke,
        ok=judged.ok,
        ending=judged.ending,
        tail=completed.tail(),
        seconds=clock.monotonic() - started,
        log=str(log) if log is not None else None,
        generated=judged.generated,
        remedy=judged.remedy,
    )


def _argv(prefix: Path, smoke: Smoke, path: str) -> list[str] | None:
    python = str(prefix / "bin" / "python")
    if smoke.kind is SmokeKind.IMPORT:
        return [python, "-c", "".join(f"import {module}\n" for module in smoke.arguments)]
    if smoke.kind is SmokeKind.PYTHON:
        return [python, "-c", smoke.arguments[0]]
    if smoke.kind is SmokeKind.GENERATE:
        return [python]  # the rest is known only once there is a folder for it
    program = shutil.which(smoke.arguments[0], path=path)
    return [program, *smoke.arguments[1:]] if program else None
