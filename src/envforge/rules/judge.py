"""All rules over one moment. The same judge serves the plan, the build and the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from envforge.model.finding import Finding, Severity
from envforge.model.profile import Ignore

from .arch_unsupported import arch_unsupported
from .conda_replaced import conda_replaced
from .context import Context
from .cuda_mixed import cuda_mixed
from .file_clobbered import file_clobbered
from .forbid import package_forbidden
from .hold import hold_violated
from .keep import kept_package_changed
from .leftover import leftover
from .native import library_missing, symbol_absent, symbol_undefined
from .pin_contradiction import pin_contradiction
from .record_missing import record_missing
from .requirement_unmet import requirement_unmet
from .wrong_index import package_wrong_index

Rule = Callable[[Context], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    kept_package_changed,
    hold_violated,
    package_forbidden,
    cuda_mixed,
    requirement_unmet,
    pin_contradiction,
    package_wrong_index,
    record_missing,
    leftover,
    file_clobbered,
    conda_replaced,
    arch_unsupported,
    library_missing,
    symbol_undefined,
    symbol_absent,
)
NATIVE = (arch_unsupported, library_missing, symbol_undefined, symbol_absent)
"""Those that only look at compiled files."""
_RANK = {severity: rank for rank, severity in enumerate(Severity)}


def judge(context: Context, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """What every one of ``rules`` finds in the last moment, the severe first, then by id, subject and message."""
    step = context.now.name
    found: dict[tuple[str, str], Finding] = {}
    for rule in rules:
        for finding in rule(context):
            found.setdefault(finding.key, replace(lowered(finding, context.profile.ignore), step=step))
    return tuple(sorted(found.values(), key=lambda each: (_RANK[each.severity], each.id, each.subject, each.message)))


def lowered(finding: Finding, ignore: Iterable[Ignore]) -> Finding:
    """The finding, as info where the profile ignores it."""
    for each in ignore:
        if each.id == finding.id and (each.subject is None or fnmatchcase(finding.subject, each.subject)):
            evidence = {**finding.evidence, "ignored": each.because or "the profile ignores it"}
            return replace(finding, severity=Severity.INFO, evidence=evidence)
    return finding
