"""`audit`: recorded against actual, down to the bytes; nothing of the environment is run, nothing is written to it."""

from __future__ import annotations

import pwd
from dataclasses import replace
from pathlib import Path

from envforge.model.drift import Audit, Audits, Checked, Drift
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.views import Audited
from envforge.probe import launch, processes
from envforge.rules import events as event_rules
from envforge.store import audited
from envforge.system import clock

from . import suiting
from .foreign import checked, compare, found, judge, keeper, look, names_a_path
from .generations import beginning, linked
from .launching import remember
from .looking import About, worst_first
from .path import current, require
from .profiles import recorded
from .shop import Shop
from .show import moved_on


def audit(shop: Shop, name: str, *, deep: bool = False, profile: Profile | None = None) -> Result[Audit]:
    """Compare the environment ``name`` with its last snapshot, and judge the guards of its profile (or ``profile``).

    ``name`` may also be a path, of a prefix of this home or of an environment that envforge did not build: see
    `unkept`. Quick: only files whose size, times or inode differ from when they were last known to be right are hashed;
    ``deep``: all. Raises UsageError ``no-such-environment``, ``not-an-environment`` or ``profile-not-given``,
    EnvforgeError ``no-generation`` or ``corrupt-record``.
    """
    home = shop.home
    if not names_a_path(home, name):
        generation, _ = current(home, require(home, name))
        return _kept(shop, name, generation, deep=deep, profile=profile)
    kept = keeper(home, Path(name))
    if kept is None:
        return unkept(shop, Path(name), profile)
    shop.tell(Note(text=f"`{name}` is generation {kept[1]} of `{kept[0]}`: it is audited as that"))
    return _kept(shop, *kept, deep=deep, profile=profile)


def unkept(shop: Shop, path: Path, profile: Profile | None) -> Result[Audit]:
    """Compare an environment that nobody recorded with what its RECORDs say, and judge the guards of ``profile``.

    Every file is hashed; nothing is written anywhere. Raises UsageError ``not-an-environment`` or
    ``profile-not-given``.
    """
    there = found(path)
    if profile is None:
        raise UsageError(
            "profile-not-given",
            f"`{there.prefix}` was not built by envforge, so no profile of it is recorded",
            hint=f"say by which to judge it: `envforge audit {there.prefix} --profile PROFILE`",
        )
    started = clock.monotonic()
    compare(shop, there, profile)
    shop.tell(Working(what=f"looking at {there.prefix}"))
    seen = look(there)
    shop.tell(Working(what=None))
    host = suiting.host(shop, profile, seen.observation.state)
    findings, unknown = judge(shop.home, seen, profile, host)
    return Result(
        command="audit",
        data=Audit(
            environment=str(there.prefix),
            profile=profile.name,
            generation=None,
            deep=True,
            checked=checked(seen, clock.monotonic() - started),
            processes=_processes(there.prefix),
            unknown=unknown,
        ),
        findings=worst_first((*findings, *suiting.findings(profile, seen.observation.state, host))),
    )


def _kept(shop: Shop, name: str, generation: int, *, deep: bool, profile: Profile | None) -> Result[Audit]:
    home = shop.home
    started = clock.monotonic()
    about = About(home=home, name=name, generation=generation)
    stamp = launch.stamp(about.prefix)
    snapshot = about.snapshot()
    built_from = recorded(home, name, generation)
    judged = profile or built_from
    begun = beginning(home, name, generation)
    moved, why = moved_on(name, built_from, begun)
    shop.tell(Working(what=f"looking at {name}"))
    looked = about.look(snapshot, deep=deep)
    about = replace(about, host=suiting.host(shop, judged, looked.state))
    findings = about.findings(judged, begun.get("substitutes", {}), snapshot, looked, about.surroundings(looked))
    findings = worst_first((*findings, *suiting.findings(judged, looked.state, about.host, snapshot)))
    shop.tell(Working(what=None))
    if profile is None:
        severities = [each.severity for each in findings]
        errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
        audited.write(home, name, generation, Audited(at=clock.now(), deep=deep, errors=errors, warnings=warnings))
        if not errors:
            remember(home, name, generation, stamp)
    if home.current(name) != generation:
        findings = tuple(_elsewhere(each, name, f"{name}/{generation}.{snapshot.step}") for each in findings)
    return Result(
        command="audit",
        data=Audit(
            environment=name,
            profile=judged.name,
            generation=generation,
            deep=deep,
            checked=Checked(
                distributions=len(looked.state),
                files=len(looked.now),
                bytes=looked.hashed,
                seconds=clock.monotonic() - started,
            ),
            events=event_rules.events(looked.drift, _users(looked.drift)) if looked.drift is not None else (),
            outdated=(why,) if moved and why else (),
            processes=_processes(about.prefix),
        ),
        findings=findings,
    )


def _elsewhere(finding: Finding, name: str, snapshot: str) -> Finding:
    """What is not in use cannot be repaired in place."""
    if f"`envforge repair {name}`" not in (finding.remedy or ""):
        return finding
    return replace(finding, remedy=f"`envforge rollback {name} {snapshot}` builds it anew as it was recorded")


def _processes(prefix: Path) -> tuple[str, ...]:
    return tuple(f"{each.pid} {' '.join(each.argv)}" for each in processes.using(prefix))


def audit_all(shop: Shop, *, deep: bool = False) -> Result[Audits]:
    """Every environment that has a generation in use; findings name the environment in their message.

    One that cannot be audited, since its folder or records are gone or damaged, is a finding, and the others go on.
    Raises UsageError ``newer-record``.
    """
    home = shop.home
    audits: list[Audit] = []
    findings: list[Finding] = []
    for name in home.environments():
        if linked(home, name) is None:
            continue
        try:
            result = audit(shop, name, deep=deep)
        except UsageError:
            raise
        except EnvforgeError as error:
            findings.append(_not_audited(name, error))
            continue
        audits.append(result.data)
        findings += [replace(each, message=f"{name}: {each.message}") for each in result.findings]
    return Result(command="audit", data=Audits(environments=tuple(audits)), findings=tuple(findings))


def _not_audited(name: str, error: EnvforgeError) -> Finding:
    damaged = error.code == "corrupt-record"
    return Finding(
        id="file-modified" if damaged else "file-missing",
        severity=Severity.ERROR,
        subject=name,
        message=f"{name}: it cannot be audited: {error.message}" + (f" ({error.cause})" if error.cause else ""),
        evidence={"code": error.code},
        remedy=error.hint,
    )


def _users(drift: Drift) -> dict[int, str]:
    """Names of the users that own what changed."""
    names = {}
    for uid in {each.uid for each in drift.files if each.uid is not None} | {uid for _, uid, _ in drift.infos.values()}:
        try:
            names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            names[uid] = str(uid)
    return names
