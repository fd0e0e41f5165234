"""What every use case needs: the settings, the home, and somebody to tell."""

from __future__ import annotations

from dataclasses import dataclass

from envforge.model.progress import Listener
from envforge.model.settings import Settings
from envforge.store.layout import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    settings: Settings
    home: Home
    tell: Listener
