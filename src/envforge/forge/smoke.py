"""Smoke checks: each in a child process of its own group, with a time limit; a signal is a finding."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile, Smoke, SmokeKind
from envforge.model.progress import Listener, Note, Working
from envforge.model.result import SmokeResult
from envforge.system import clock, process

from . import inside


def run(prefix: Path, profile: Profile, tell: Listener, log: Path) -> tuple[SmokeResult, ...]:
    """Run every smoke check of the profile in the environment at ``prefix``; what they say is appended to ``log``."""
    results = []
    env = inside.variables(prefix, profile, tell)
    for smoke in profile.smoke:
        tell(Working(what=f"smoke check {smoke.name}"))
        result = _one(prefix, smoke, env, log)
        tell(Working(what=None))
        tell(Note(text=f"smoke check {smoke.name}: {'ok' if result.ok else result.ending}, {result.seconds:.1f} s"))
        results.append(result)
    return tuple(results)


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
            remedy="mend what it names, in the profile or in the check; nothing that was in use was changed",
        )
        for result in results
        if not result.ok
    )


def _one(prefix: Path, smoke: Smoke, env: Mapping[str, str], log: Path) -> SmokeResult:
    started = clock.monotonic()
    argv = _argv(prefix, smoke, env["PATH"])
    if argv is None:
        reason = f"`{smoke.arguments[0]}` is not found in the environment or on PATH"
        return SmokeResult(smoke=smoke, ok=False, ending=reason, tail="", seconds=0.0)
    try:
        # Not where the user stands: a `torch.py` there would be what is proved.
        with tempfile.TemporaryDirectory(prefix="envforge-smoke-") as neutral:
            completed = process.run(argv, env=env, cwd=Path(neutral), timeout=smoke.timeout, log=log)
    except OSError as error:
        return SmokeResult(smoke=smoke, ok=False, ending=f"cannot be started: {error}", tail="", seconds=0.0)
    return SmokeResult(
        smoke=smoke,
        ok=completed.ok,
        ending=completed.ending(),
        tail=completed.tail(),
        seconds=clock.monotonic() - started,
        log=str(log),
    )


def _argv(prefix: Path, smoke: Smoke, path: str) -> list[str] | None:
    python = str(prefix / "bin" / "python")
    if smoke.kind is SmokeKind.IMPORT:
        return [python, "-c", "".join(f"import {module}\n" for module in smoke.arguments)]
    if smoke.kind is SmokeKind.PYTHON:
        return [python, "-c", smoke.arguments[0]]
    program = shutil.which(smoke.arguments[0], path=path)
    return [program, *smoke.arguments[1:]] if program else None
