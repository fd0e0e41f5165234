"""What a `backfill` step would bring for the imports that nothing declares."""

from __future__ import annotations

from collections.abc import Iterable

from envforge.model.finding import Finding, Severity
from envforge.model.views import Importer, Suggestion

from .requirements import parse

_ID = "import-undeclared"


def backfill(findings: Iterable[Finding]) -> tuple[Suggestion, ...]:
    """One for every distribution that an error or a warning ``import-undeclared`` names; what is absent comes first."""
    wanted: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.id == _ID and finding.severity is not Severity.INFO:
            wanted.setdefault(str(finding.evidence["distribution"]), []).append(finding)
    found = [
        Suggestion(
            requirement=name + ",".join(sorted({_bounds(each) for each in group} - {""})),
            present=all(each.evidence["provider"] is not None for each in group),
            assumed=all(bool(each.evidence["assumed"]) for each in group),
            importers=tuple(
                Importer(
                    distribution=each.subject,
                    version=str(each.evidence["version"]),
                    module=str(each.evidence["module"]),
                    place=f"{each.evidence['path']}:{each.evidence['line']}",
                )
                for each in group
            ),
        )
        for name, group in wanted.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.present, each.requirement)))


def _bounds(finding: Finding) -> str:
    wanted = parse(str(finding.evidence["requirement"]))
    return wanted.bounds if wanted is not None else ""
