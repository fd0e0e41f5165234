"""Small pieces of text that several renderers share: sizes, times, versions, causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from envforge.model.finding import Finding, Severity
from envforge.model.plan import Change
from envforge.model.state import Distribution

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_KILO = 1000
_MINUTE = 60
_HOUR = 3600
_TENTHS_BELOW = 10
_SHORT_DIGEST = 12

ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def size(count: int) -> str:
    """Bytes in decimal units, as download pages show them: ``812 B``, ``4.2 MB``, ``11.6 GB``."""
    if count < _KILO:
        return f"{count} B"
    power = 1
    while power < len(_UNITS) and round(count / _KILO**power, 1) >= _KILO:
        power += 1
    return f"{count / _KILO**power:.1f} {_UNITS[power - 1]}"


def seconds(value: float) -> str:
    """``0.4 s``, ``53 s``, ``12 min 5 s``, ``1 h 2 min``."""
    if value < _TENTHS_BELOW:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 step``, ``2 steps``, ``12,345 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def python(version: str | None, wanted: str) -> str:
    """``Python 3.11.7 (>=3.11)``: the one that is taken, and what the profile asks for."""
    if version is None or version == wanted:
        return f"Python {wanted}"
    return f"Python {version} ({wanted})"


def cut(words: Sequence[str], most: int) -> str:
    """The first ``most`` words, and how many more there are."""
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown}, … {len(words) - most:,} more"


def by_weight(added: Iterable[Change]) -> list[Change]:
    """What was asked for first, then the biggest: those are the names that a reader looks for."""

    def weight(change: Change) -> tuple[bool, int, str]:
        asked = change.because is not None and change.because.distribution is None and not change.because.guard
        return (not asked, -(change.after.size or 0) if change.after else 0, change.label)

    return sorted(added, key=weight)


def replaced(change: Change) -> tuple[str, str]:
    """The two sides of a change; where the version is the same, what else tells the builds apart."""
    before, after = change.before, change.after
    if before is None or after is None:
        return (before.version if before else "absent", after.version if after else "removed")
    if before.version != after.version:
        return before.version, after.version
    for old, new in (
        (before.index, after.index),
        (before.build, after.build),
        (_digest(before), _digest(after)),
    ):
        if old != new:
            return f"{before.version} ({old or 'unknown'})", f"{after.version} ({new or 'unknown'})"
    return before.version, f"{after.version} (other contents)"


def _digest(value: Distribution) -> str | None:
    return value.sha256[:_SHORT_DIGEST] if value.sha256 else None


def cause(finding: Finding, changes: Iterable[Change]) -> str | None:
    """Which requirement of which distribution opened ``finding``, in a sentence; None where none did."""
    found = finding.evidence.get("cause")
    if found is None:
        found = next((str(one.because) for one in changes if one.label == finding.subject and one.because), None)
    return None if found is None else str(found)


def unsaid(cause: str | None, message: str) -> str | None:
    """``cause``, unless ``message`` tells it already (there with its literals in backticks, and the step by name)."""
    if cause is None:
        return None
    plain = message.replace("`", "")
    return None if cause in plain or cause.removeprefix("the step ") in plain else cause


def via(change: Change) -> str | None:
    """The chain from what the step asks for down to who forced the change, where it has a link in between."""
    if change.because is None or len(change.because.via) < 2:
        return None
    return " → ".join(change.because.via)


def remarks(values: Sequence[Finding]) -> str | None:
    """What the findings of severity info come to, in a few words; None where there are none."""
    kept = [finding for finding in values if finding.id == "ambient-config" and "kept out" in finding.message]
    parts = []
    if kept:
        tools = list(dict.fromkeys(finding.subject for finding in kept))
        whose = tools[0] if len(tools) == 1 else f"{', '.join(tools[:-1])} and {tools[-1]}"
        parts.append(f"the configuration of {whose} here was kept out ({count(len(kept), 'source')})")
    others = Counter(finding.id for finding in values if finding not in kept)
    parts += [f"{count(number, 'remark')} {name}" for name, number in others.items()]
    return "; ".join(parts) or None


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: ORDER.index(finding.severity))


def severities(findings: Iterable[Finding]) -> str:
    """How many of each severity: ``3 errors, 1 warning``, the worst first."""
    counted = Counter(finding.severity for finding in findings)
    named = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "remark"}
    return ", ".join(count(counted[severity], named[severity]) for severity in ORDER if counted[severity])
