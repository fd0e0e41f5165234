"""What an audit found to differ from what was recorded, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envforge.model.drift import Drift, FileDrift
from envforge.model.finding import Finding, Severity
from envforge.model.state import Distribution, FileRow, bringer, is_package, shown

from .wording import called

REPAIR = "`envforge repair` puts it right"
"""The remedy of what drifted, and of what follows from that."""

_SHOWN = 10  # paths that the evidence names; the count tells of the rest
_ORDER = ("package-missing", "package-changed", "package-extra", "file-missing", "file-modified")


def findings(drift: Drift) -> tuple[Finding, ...]:
    """One for each distribution that is missing, extra or changed, with its files in the evidence.

    Of the others one for each distribution whose files are gone and one for each whose files differ, and one for each
    recorded file that nobody owns. In the order of what hurts most, then by subject. A new file that nobody owns is no
    drift: see `rules.surroundings`.
    """
    told = {*drift.missing, *drift.extra, *drift.changed}
    # What became of a distribution that a conda package brought is told of the distribution.
    brought = {owner: name for name in (*drift.missing, *drift.changed) if (owner := _bringer(drift, name))}
    owned: dict[str, list[FileDrift]] = {}
    for file in drift.files:
        for owner in dict.fromkeys(brought.get(owner, owner) for owner in file.owners):
            owned.setdefault(owner, []).append(file)
    found = [_missing(drift.before[name], owned.get(name, ())) for name in drift.missing]
    found += [_extra(drift, name, owned.get(name, ())) for name in drift.extra]
    found += [_changed(drift, name, owned.get(name, ())) for name in drift.changed]
    for name, files in owned.items():
        if name not in told:
            found += _files(f"`{shown(name)}`", shown(name), files)
    for file in drift.files:
        if not file.owners:
            found += _files("", file.path, (file,))
    return tuple(sorted(found, key=lambda each: (_ORDER.index(each.id), each.subject, each.aspect or "")))


def _bringer(drift: Drift, name: str) -> str | None:
    """The key of the conda package that had brought a distribution, where the package itself is still as it was."""
    key = bringer(drift.before[name])
    return key if key is not None and key in drift.after and key not in drift.changed else None


def unvouched(drift: Drift, rows: Iterable[FileRow]) -> Iterator[FileRow]:
    """Recorded files that only a RECORD vouched for which is not as it was: that they have their size says little."""
    lost = {
        owner
        for file in drift.files
        if file.kind != "extra" and file.path.endswith(".dist-info/RECORD")
        for owner in file.owners
    }
    doubted = lost.union(drift.missing, drift.changed)
    return (row for row in rows if row.sha256 is None and row.link is None and doubted.intersection(row.owners))


def _differences(before: Distribution, after: Distribution) -> dict[str, tuple[str | None, str | None]]:
    """What tells the two apart -> as recorded, as found: ``version``, ``build``, ``source``, ``contents``, ``RECORD``.

    What one side does not know is no difference, but a build tag, which only some wheels have.
    """
    pairs: dict[str, tuple[str | None, str | None]] = {
        "version": (before.version, after.version),
        "source": (before.index, after.index) if before.index and after.index else (None, None),
        "contents": (before.contents, after.contents) if before.contents and after.contents else (None, None),
        "RECORD": (before.record, after.record) if before.record and after.record else (None, None),
    }
    if before.record is None or before.record != after.record:
        pairs["build"] = (before.build, after.build)
    return {what: pair for what, pair in pairs.items() if pair[0] != pair[1]}


def _missing(before: Distribution, files: Sequence[FileDrift]) -> Finding:
    return Finding(
        id="package-missing",
        severity=Severity.ERROR,
        subject=shown(before.name),
        message=f"{called(before)} was recorded and is not installed any more; {_counted(_gone(files))} gone",
        evidence={"version": before.version, **_paths(_gone(files))},
        remedy=REPAIR,
    )


def _extra(drift: Drift, name: str, files: Sequence[FileDrift]) -> Finding:
    after = drift.after[name]
    installer = drift.infos[name][2] if name in drift.infos else after.installer
    return Finding(
        id="package-extra",
        severity=Severity.ERROR,
        subject=shown(name),
        message=f"{called(after)} is installed and was not recorded"
        + (f"; `{installer}` put it there" if installer else ""),
        evidence={"version": after.version, "installer": installer, **_paths(files)},
        remedy=REPAIR,
    )


def _changed(drift: Drift, name: str, files: Sequence[FileDrift]) -> Finding:
    before, after = drift.before[name], drift.after[name]
    differ = _differences(before, after)
    if "version" in differ:
        text = f"{called(before)} was recorded, {after.version} is installed"
    elif "contents" in differ or "build" in differ or "source" in differ:
        what = " and ".join(word for word in ("build", "source", "contents") if word in differ)
        text = f"{called(before)} is not what was recorded: the same version with another {what}"
    else:
        record = "record in conda-meta" if is_package(name) else "RECORD"
        text = f"{called(before)} has another {record} than was recorded, though it declares the same contents"
    lost = _gone(files)
    if lost:
        text += f"; {_counted(lost)} gone"
    return Finding(
        id="package-changed",
        severity=Severity.ERROR,
        subject=shown(name),
        message=text,
        evidence={
            "differs": {what: {"recorded": pair[0], "found": pair[1]} for what, pair in differ.items()},
            "installer": after.installer,
            **_paths(files),
        },
        remedy=REPAIR,
    )


_WHAT: Mapping[str, tuple[str, str, Severity, str]] = {
    "missing": ("file-missing", "gone", Severity.ERROR, REPAIR),
    "modified": (
        "file-modified",
        "not as recorded",
        Severity.ERROR,
        REPAIR,
    ),
    "unreadable": (
        "file-modified",
        "not readable by this user, so nobody can say whether it is as recorded",
        Severity.WARNING,
        "run the audit as the owner of the environment, or mend the permissions",
    ),
}


def _files(owner: str, subject: str, files: Iterable[FileDrift]) -> Iterator[Finding]:
    by_kind: dict[str, list[FileDrift]] = {}
    for file in files:
        by_kind.setdefault(file.kind, []).append(file)
    for kind, same in by_kind.items():
        if kind not in _WHAT:
            continue
        identity, state, severity, remedy = _WHAT[kind]
        if len(same) == 1:
            text = f"`{same[0].path}`{f' of {owner}' if owner else ''} is {state}"
        else:
            text = f"{len(same)} files of {owner} are {state} (`{same[0].path}` and others)"
        yield Finding(
            id=identity,
            severity=severity,
            subject=subject,
            aspect=kind if kind == "unreadable" else None,
            message=text,
            evidence=_paths(same) | _hashes(same),
            remedy=remedy,
        )


def _gone(files: Iterable[FileDrift]) -> list[FileDrift]:
    return [file for file in files if file.kind == "missing"]


def _counted(files: Sequence[FileDrift]) -> str:
    return "1 file is" if len(files) == 1 else f"{len(files)} files are"


def _paths(files: Sequence[FileDrift]) -> dict[str, Any]:
    return {"count": len(files), "paths": [file.path for file in files[:_SHOWN]]}


def _hashes(files: Sequence[FileDrift]) -> dict[str, Any]:
    """Of a single file, what its bytes should be and are."""
    if len(files) > 1 or files[0].expected is None:
        return {}
    return {"expected": files[0].expected, "actual": files[0].actual}
