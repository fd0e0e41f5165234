"""The user's configuration (spec 6), after flag, variable and file are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``mirrors`` and ``substitutes`` are keyed by index name (``mirrors`` also by URL).

    ``link_mode`` is ``auto`` or ``copy``; ``proxy`` a URL that replaces the host's; ``sources`` says, per name
    that was set, by what (``flag``, ``ENVFORGE_HOME``, or ``path/config.yaml:3``).
    """

    home: Path
    cache: Path
    engine: str = "uv"
    link_mode: str = "auto"
    keep_generations: int = 3
    proxy: str | None = None
    python_mirror: str | None = None
    allow_ambient: tuple[str, ...] = ()
    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    substitutes: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
