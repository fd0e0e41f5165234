"""What foreign code, a step of kind run or a smoke check, did to files that were right before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.state import FileRow, State
from envforge.probe import prefix as prefixes
from envforge.rules.diff import same_build
from envforge.rules.judge import lowered

from .known import Known, inner

_SHOWN = 10
VITAL = re.compile(r"pyvenv\.cfg|bin/python[0-9.]*")
_RUNS = re.compile(r"/site-packages/([^/]+\.pth|(site|user)customize\.py)$")


def damage(
    by: str,
    prefix: Path,
    rows: Iterable[FileRow],
    now: Iterable[FileRow],
    *,
    before: State,
    after: State,
    profile: Profile,
    known: Known,
) -> tuple[Finding, ...]:
    """Findings for what is gone or has other bytes than its RECORD says, for what was asked for and is gone, and for
    what now runs by itself though nobody owns it.

    ``by`` names the step or check; ``rows`` are the files as they were, ``now`` as they are, ``before`` and ``after``
    what was and is installed. A distribution that was replaced properly is a change and no damage.
    """
    were = {row.path: row for row in rows}
    touched = [were[path] for path in prefixes.changed(prefix, were.values())]
    kept = {name for name, item in after.items() if name in before and same_build(before[name], item)}
    owners = {owner for row in touched for owner in row.owners} & kept
    found = []
    for name, wrong in prefixes.damaged(prefix, owners).items():
        lies = known.lies(before[name].sha256 or "")
        # A RECORD may name files that no wheel brought, and hashes that they never had.
        paths = tuple(path for path in wrong if path in were and inner(path) not in lies)
        gone = [path for path in paths if not (prefix / path).exists()]
        if paths:
            found.append(_finding(by, "file-missing" if len(gone) == len(paths) else "file-modified", name, paths))
    for row in touched:
        if not row.owners and not (prefix / row.path).exists():
            found.append(_finding(by, "file-missing", row.path, (row.path,)))
        elif not row.owners and VITAL.fullmatch(row.path):
            found.append(_finding(by, "file-modified", row.path, (row.path,)))
    found += [
        _finding(by, "file-unowned", row.path, (row.path,))
        for row in now
        if row.path not in were and not row.owners and _RUNS.search(row.path)
    ]
    for name, item in before.items():
        if name not in after and item.requested:
            found.append(
                Finding(
                    id="package-missing",
                    severity=Severity.ERROR,
                    subject=name,
                    step=by,
                    message=f"`{name}` {item.version}, which an earlier step asked for, was removed by `{by}`",
                    remedy=f"remove it with a step `uninstall: [{name}]` if that is meant",
                )
            )
    return tuple(lowered(each, profile.ignore) for each in found)


_WORDS = {
    "file-missing": ("is gone", "are gone"),
    "file-modified": ("is not what it was", "are not what their RECORD says"),
    "file-unowned": ("runs by itself, and no distribution owns it,", "run by themselves"),
}


def _finding(by: str, identity: str, subject: str, paths: tuple[str, ...]) -> Finding:
    one, many = _WORDS[identity]
    return Finding(
        id=identity,
        severity=Severity.ERROR,
        subject=subject,
        step=by,
        message=f"{len(paths)} files of `{subject}` {many} after `{by}` ({paths[0]})"
        if len(paths) > 1
        else f"`{paths[0]}` {one} after `{by}`",
        evidence={"paths": list(paths[:_SHOWN]), "count": len(paths)},
        remedy="let the step write to files of its own, or list the finding under `ignore` with the reason",
    )
