"""What a rule reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """``error`` fails a command (exit 3), ``warning`` is told, ``info`` is kept for who asks."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


FINDING_IDS = frozenset(
    {
        "package-missing", "package-extra", "package-changed",
        "file-missing", "file-modified", "file-unowned", "file-clobbered",
        "record-missing", "leftover", "requirement-unmet",
        "kept-package-changed", "hold-violated", "package-forbidden",
        "cuda-mixed", "pin-contradiction",
        "symbol-undefined", "library-missing", "symbol-absent",
        "arch-unsupported", "gpu-mismatch", "driver-too-old", "machine-changed",
        "package-wrong-index", "index-missing",
        "user-site-visible", "ambient-config", "library-path-override", "proxy-scheme",
        "nested-environment", "import-undeclared", "smoke-failed",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    ``subject`` is the distribution, library or host fact concerned, ``step`` the name of the step after
    which it was seen (None outside a build). ``evidence`` holds JSON-able values only. ``aspect`` tells findings of one
    id and subject apart (which guard, which requirement).
    """

    id: str
    severity: Severity
    subject: str
    message: str
    step: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remedy: str | None = None
    aspect: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same finding after another step: id, and subject with its aspect."""
        return (self.id, self.subject if self.aspect is None else f"{self.subject}: {self.aspect}")
