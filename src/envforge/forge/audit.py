"""`audit`: recorded against actual, down to the bytes; nothing of the environment is run, nothing is written to it."""

from __future__ import annotations

import pwd
from dataclasses import replace

from envforge.model.drift import Audit, Audits, Checked, Drift
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.probe import launch, processes
from envforge.rules import events as event_rules
from envforge.system import clock

from .generations import beginning, linked
from .launching import remember
from .looking import About
from .path import current, require
from .profiles import recorded
from .shop import Shop
from .show import moved_on


def audit(shop: Shop, name: str, *, deep: bool = False, profile: Profile | None = None) -> Result[Audit]:
    """Compare the environment ``name`` with its last snapshot, and judge the guards of its profile (or ``profile``).

    Quick: only files whose size, times or inode differ from when they were last known to be right are hashed; ``deep``:
    all. Raises UsageError ``no-such-environment``, EnvforgeError ``no-generation`` or ``corrupt-record``.
    """
    home = shop.home
    generation, _ = current(home, require(home, name))
    started = clock.monotonic()
    about = About(home=home, name=name, generation=generation)
    stamp = launch.stamp(about.prefix)
    snapshot = about.snapshot()
    built_from = recorded(home, name, generation)
    judged = profile or built_from
    begun = beginning(home, name, generation)
    moved, why = moved_on(name, built_from, begun.get("source"))
    shop.tell(Working(what=f"looking at {name}"))
    found = about.look(snapshot, deep=deep)
    findings = about.findings(judged, begun.get("substitutes", {}), snapshot, found, about.surroundings(found))
    shop.tell(Working(what=None))
    if profile is None and not any(each.severity is Severity.ERROR for each in findings):
        remember(home, name, generation, stamp)
    return Result(
        command="audit",
        data=Audit(
            environment=name,
            profile=judged.name,
            generation=generation,
            deep=deep,
            checked=Checked(
                distributions=len(found.state),
                files=len(found.now),
                bytes=found.hashed,
                seconds=clock.monotonic() - started,
            ),
            events=event_rules.events(found.drift, _users(found.drift)) if found.drift is not None else (),
            outdated=(why,) if moved and why else (),
            processes=tuple(f"{each.pid} {' '.join(each.argv)}" for each in processes.using(about.prefix)),
        ),
        findings=findings,
    )


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
