"""One path, two owners, different content."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from envforge.model.finding import Finding, Severity
from envforge.model.state import Clash, Observation, is_package, shown

from .conda_replaced import replaced
from .context import Context
from .data import STRAY_FOLDERS
from .wording import WHOLE_DISTRIBUTIONS, below_site

_NATIVE = re.compile(r"\.(so(\.\d+)*|pyd|dll|dylib)$")
_SITE = "site-packages/"
_SHOWN = 10


def file_clobbered(context: Context) -> Iterator[Finding]:
    """One finding for every set of owners, severity and top-level folder; nothing while there is no observation.

    The subject is the path below site-packages, or the folder that all these paths share. It does not depend on who
    won, which changes with the order of installation.

    An error is what breaks one of the owners: a shared library or extension, a file inside a package, a top-level
    module that bears the name of an owner. Told as a warning is what clean environments hold too: stray files and
    folders of packaging (``build_backend.py``, ``tests/__init__.py``), what lies outside site-packages, metadata, and
    the ``__init__.py`` of a folder in which every owner has a part of its own.
    """
    observation = context.now.observation
    if observation is None:
        return
    groups: dict[tuple[tuple[str, ...], Severity, str], list[Clash]] = {}
    # What pip put in the place of conda's is told once, and not file by file.
    told = [set(pair) for pair in replaced(context)]
    clashes = [clash for clash in observation.clashes if _differs(clash) and clash.declared.keys() not in told]
    for clash in sorted(clashes, key=lambda clash: clash.path):
        owners = tuple(sorted(clash.declared))
        severity = Severity.ERROR if _breaks(clash, clashes, observation) else Severity.WARNING
        groups.setdefault((owners, severity, below_site(clash.path).partition("/")[0]), []).append(clash)
    for (owners, severity, _), group in groups.items():
        yield _finding(owners, severity, group)


def _differs(clash: Clash) -> bool:
    """Whether RECORDs give different hashes, or one gives none and what lies there is not what the other gives."""
    hashes = set(clash.declared.values()) - {None}
    overwritten = None in clash.declared.values() and clash.actual is not None and clash.actual not in hashes
    return len(hashes) > 1 or (bool(hashes) and overwritten)


def _breaks(clash: Clash, clashes: Iterable[Clash], observation: Observation) -> bool:
    """Whether one of the owners no longer works as it was made."""
    if _NATIVE.search(clash.path):
        return True
    _, in_site, path = clash.path.partition(_SITE)
    if not in_site:
        return False
    folder, name = posixpath.split(path)
    if not folder:
        return name.endswith(".py") and canonicalize_name(name.removesuffix(".py")) in clash.declared
    top = folder.partition("/")[0]
    if top in STRAY_FOLDERS or top.endswith(".dist-info"):
        return False
    return name != "__init__.py" or not _namespace(clash, clashes, observation)


def _namespace(clash: Clash, clashes: Iterable[Clash], observation: Observation) -> bool:
    """Whether an ``__init__.py`` only opens a folder in which every owner has files of its own and no other clash."""
    folder = posixpath.dirname(clash.path) + "/"
    owners = clash.declared.keys()
    if any(
        other is not clash and other.path.startswith(folder) and owners & other.declared.keys() for other in clashes
    ):
        return False
    inside = {
        owner
        for row in observation.files
        if row.path.startswith(folder) and "/" in row.path[len(folder) :] and len(row.owners) == 1
        for owner in row.owners
    }
    return owners <= inside


def _finding(owners: tuple[str, ...], severity: Severity, group: list[Clash]) -> Finding:
    paths = [below_site(clash.path) for clash in group]
    subject = paths[0] if len(paths) == 1 else posixpath.commonpath(paths)
    winners = sorted(
        {owner for clash in group for owner in owners if clash.declared[owner] == clash.actual is not None}
    )
    lies = (
        f"what lies there is of `{'`, `'.join(map(shown, winners))}`"
        if winners
        else "what lies there is of none of them"
    )
    what = f"`{subject}`" if len(paths) == 1 else f"{len(paths)} files in `{subject}`"
    names = " and ".join(f"`{shown(owner)}`{' (conda)' if is_package(owner) else ''}" for owner in owners)
    return Finding(
        id="file-clobbered",
        severity=severity,
        subject=subject,
        aspect=", ".join(owners),
        message=f"{what}: {names} each bring different content; {lies}",
        evidence={
            "guard": WHOLE_DISTRIBUTIONS,
            "owners": [*map(shown, owners)],
            "winners": [*map(shown, winners)],
            "paths": paths[:_SHOWN],
            "count": len(paths),
        },
        remedy="uninstall one of them and install the other again"
        if severity is Severity.ERROR
        else "harmless as far as is known; list it under `ignore` with the reason to silence it",
    )
