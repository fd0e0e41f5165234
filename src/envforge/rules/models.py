"""Whether the files of a model still are what was fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envforge.model.finding import Finding, Severity
from envforge.model.models import Kept

_NAMED = 10


def changed_model(name: str, kept: Kept, found: Mapping[str, str | None], remedy: str) -> Iterator[Finding]:
    """``found``: path -> the sha256 that it has now, None where it is gone. At most one finding of each id."""
    missing = sorted(path for path in kept.files if found[path] is None)
    modified = sorted(path for path, file in kept.files.items() if found[path] not in {None, file.sha256})
    for identity, paths, how in (("file-missing", missing, "gone"), ("file-modified", modified, "not as fetched")):
        if paths:
            yield Finding(
                id=identity,
                severity=Severity.ERROR,
                subject=name,
                message=f"of the model `{name}`, {len(paths)} of {len(kept.files)} files are {how}",
                evidence={"paths": paths[:_NAMED]},
                remedy=remedy,
            )
