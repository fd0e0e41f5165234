"""What smoke checks came to, and several environments side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .profile import Smoke


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What a model generated. ``seconds`` are for its ``tokens`` alone, ``load_seconds`` for what came before.

    ``attention``: the backend as the engine names it, None where it does not tell. ``memory``: bytes at the peak, of
    the card as torch counts them, or of the process on the CPU. ``device``: ``cpu`` or the card's name. ``versions``:
    distribution -> version.
    """

    text: str
    tokens: int
    seconds: float
    load_seconds: float
    attention: str | None
    memory: int
    device: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """``ending`` in words (``exit status 0``, ``killed by SIGSEGV``); ``tail``: last lines of what it said.

    ``skipped``: why it was not run at all; then it is neither ``ok`` nor ``failed``. ``log``: path of the file with
    all that it said. ``remedy``: what to do about it, where that is known.
    """

    smoke: Smoke
    ok: bool
    ending: str
    tail: str
    seconds: float
    log: str | None = None
    skipped: str | None = None
    generated: Generated | None = None
    remedy: str | None = None

    @property
    def failed(self) -> bool:
        return not self.ok and self.skipped is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is remembered of one check. ``generated`` is None for what generated nothing."""

    name: str
    ok: bool
    ending: str
    skipped: str | None = None
    generated: Generated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoked:
    """The last smoke checks on one card. ``card``: its UUID, None where no card was seen; ``card_name``: what it is.

    ``at``: ISO 8601 in UTC; ``snapshot``: what was checked, as ``ENV/G.K``.
    """

    card: str | None
    card_name: str | None
    at: str
    snapshot: str
    checks: tuple[Kept, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """One environment whose smoke checks were run now. ``cards``: what they saw, each as `Smoked.card_name`."""

    environment: str
    generation: int
    profile: str
    cards: tuple[str, ...]
    checks: tuple[SmokeResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One environment's part in a comparison."""

    environment: str
    engine: str
    generated: Generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The same question to several environments. ``equal``: whether all gave the very same text."""

    model: str
    prompt: str
    equal: bool
    answers: tuple[Beside, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeView:
    environments: tuple[Proved, ...]
    compared: tuple[Compared, ...] = ()
