"""What foreign code, a step of kind run or a smoke check, did to files that were right before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Profile
from envforge.model.state import FileRow, State
from envforge.probe import prefix as prefixes
from envforge.rules.diff import same_build
from envforge.rules.judge import lowered

_SHOWN = 10


def damage(
    by: str, prefix: Path, rows: Iterable[FileRow], *, before: State, after: State, profile: Profile
) -> tuple[Finding, ...]:
    """Findings for what is gone or has other bytes than its RECORD says, and for what was asked for and is gone.

    ``by`` names the step or check; ``rows`` are the files as they were, ``before`` and ``after`` what was installed. A
    distribution that was replaced properly is a change and no damage.
    """
    known = {row.path: row for row in rows}
    touched = [known[path] for path in prefixes.changed(prefix, known.values())]
    kept = {name for name, item in after.items() if name in before and same_build(before[name], item)}
    owners = {owner for row in touched for owner in row.owners} & kept
    found = []
    for name, paths in prefixes.damaged(prefix, owners).items():
        gone = [path for path in paths if not (prefix / path).exists()]
        found.append(_finding(by, "file-missing" if len(gone) == len(paths) else "file-modified", name, paths))
    lost = [row.path for row in touched if not row.owners and not (prefix / row.path).exists()]
    found += [_finding(by, "file-missing", path, (path,)) for path in lost]
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


def _finding(by: str, identity: str, subject: str, paths: tuple[str, ...]) -> Finding:
    what = "are gone" if identity == "file-missing" else "are not what its RECORD says"
    return Finding(
        id=identity,
        severity=Severity.ERROR,
        subject=subject,
        step=by,
        message=f"{len(paths)} files of `{subject}` {what} after `{by}` ({paths[0]})"
        if len(paths) > 1
        else f"`{paths[0]}` {'is gone' if identity == 'file-missing' else 'is not what its RECORD says'} after `{by}`",
        evidence={"paths": list(paths[:_SHOWN]), "count": len(paths)},
        remedy="let the step write to files of its own, or list the finding under `ignore` with the reason",
    )
