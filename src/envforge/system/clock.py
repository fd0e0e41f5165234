"""Time: for records the wall clock in UTC, for durations the monotonic one."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """ISO 8601 in UTC, to the second: ``2026-11-30T09:16:25Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch() -> float:
    """Seconds since 1970."""
    return time.time()


def monotonic() -> float:
    """Seconds from an arbitrary start, never going back."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)
