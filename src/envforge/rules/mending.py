"""The smallest set of restorations and removals that clears what an audit found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from envforge.model.drift import Drift, FileDrift
from envforge.model.repair import Lost, Mending, RepairAction, Restoration
from envforge.model.state import Debris, FileRow, is_package, shown

from .drift import unvouched

_LEFT = frozenset({"leftover", "record-missing"})
_BACK = frozenset({"missing", "modified"})


def mending(
    drift: Drift | None,
    rows: Iterable[FileRow],
    debris: Sequence[Debris],
    unowned: Sequence[str],
    kept: Collection[str],
) -> Mending:
    """What is to be done in the prefix, by path.

    ``rows``: as recorded; ``debris``: what an interruption left; ``unowned``: paths of code that nobody owns;
    ``kept``: sha256 (hex) of the contents that the records hold.
    """
    recorded = {row.path: row for row in rows}
    foreign = {*drift.extra, *drift.changed} if drift is not None else set()
    files: list[Restoration] = []
    lost: list[Lost] = []
    remove: list[str] = []
    for file in drift.files if drift is not None else ():
        row = recorded.get(file.path)
        if file.kind in _BACK and row is not None:
            back = _back(file, row, kept)
            if isinstance(back, Lost):
                lost.append(back)
            else:
                files.append(back)
        elif file.kind == "extra" and foreign.intersection(file.owners):
            remove.append(file.path)
        elif file.kind == "unreadable":
            lost.append(Lost(subject=file.path, why="it cannot be read: mend its permissions"))
    known = {file.path for file in files}
    doubted = [
        Restoration(path=row.path, source=source(row.owners), owners=row.owners)
        for row in (unvouched(drift, recorded.values()) if drift is not None else ())
        if row.path not in known
    ]
    remove += [each.path for each in debris if each.kind in _LEFT and not _holds(each.path, recorded)]
    remove += _strange_infos(drift.files if drift is not None else (), recorded)
    return Mending(
        files=tuple(files),
        doubted=tuple(doubted),
        remove=tuple(sorted(set(remove))),
        aside=tuple(sorted(set(unowned) - set(remove))),
        lost=tuple(lost),
    )


def _strange_infos(files: Sequence[FileDrift], recorded: Mapping[str, FileRow]) -> Iterator[str]:
    """New metadata folders in which nothing was recorded and nobody owns anything, such as a renamed one."""
    claimed = {""} | {_info(path) for path in recorded} | {_info(file.path) for file in files if file.owners}
    for file in files:
        if file.kind == "extra" and _info(file.path) not in claimed:
            yield f"{_info(file.path)}.dist-info"


def _info(path: str) -> str:
    """The ``.dist-info`` that a path lies in; empty, which is always claimed, for none."""
    folder, found, _ = path.partition(".dist-info/")
    return folder if found else ""


def _back(file: FileDrift, row: FileRow, kept: Collection[str]) -> Restoration | Lost:
    if row.link is not None:
        return Restoration(path=row.path, source="link", owners=row.owners, link=row.link)
    sha256 = file.expected or row.sha256
    if sha256 is not None and sha256 in kept:
        return Restoration(path=row.path, source="kept", owners=row.owners, sha256=sha256)
    if row.owners:
        return Restoration(path=row.path, source=source(row.owners), owners=row.owners, sha256=sha256)
    return Lost(subject=row.path, why="no distribution owns it, and its content is not kept")


def source(owners: Sequence[str]) -> str:
    """Where a file of these owners comes from: what pip put over a conda package's is its own."""
    return "package" if all(map(is_package, owners)) else "wheel"


def _holds(path: str, recorded: Mapping[str, FileRow]) -> bool:
    """Whether a recorded file lies there: then it is not all debris."""
    return path in recorded or any(each.startswith(f"{path}/") for each in recorded)


def actions(plan: Mending, drift: Drift | None, debris: Iterable[Debris] = ()) -> tuple[RepairAction, ...]:
    """The same in words: by distribution, or by path where nobody owns it."""
    return tuple(_actions(plan, drift, debris))


def _actions(plan: Mending, drift: Drift | None, debris: Iterable[Debris]) -> Iterator[RepairAction]:
    before = drift.before if drift is not None else {}
    after = drift.after if drift is not None else {}
    whole = {*drift.missing, *drift.changed} if drift is not None else set()
    back: dict[str, int] = {}
    for file in plan.files:
        subject = file.owners[0] if file.owners else file.path
        back[subject] = back.get(subject, 0) + 1
    for subject in sorted(back):
        item = before.get(subject)
        yield RepairAction(
            action="reinstall" if subject in whole else "restore",
            subject=shown(subject),
            files=back[subject],
            version=item.version if item is not None else None,
        )
    owners = {file.path: file.owners[0] for file in (drift.files if drift is not None else ()) if file.owners}
    out: dict[str, int] = {}
    for path in plan.remove:
        subject = owners.get(path, path)
        out[subject] = out.get(subject, 0) + 1
    names = {each.path: each.name for each in debris}
    for subject in sorted(out):
        if subject in whole and subject in back:
            continue  # what the other version brought goes with its reinstallation
        item = after.get(subject)
        yield RepairAction(
            action="remove",
            subject=shown(names.get(subject, subject)),
            files=out[subject],
            version=item.version if item is not None else None,
        )
    for path in plan.aside:
        yield RepairAction(action="set-aside", subject=path, files=1)
