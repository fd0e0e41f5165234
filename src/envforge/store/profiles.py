"""The profile as built, beside what was built from it."""

from __future__ import annotations

from pathlib import Path

from envforge.model.profile import Profile

from .atomic import read_text, write_text
from .layout import Home


def path(home: Home, name: str, generation: int) -> Path:
    """Where the profile of a generation lies."""
    return home.record(name, generation) / "profile.yaml"


def write(home: Home, name: str, generation: int, profile: Profile) -> None:
    """Keep the profile's expanded text; raises EnvforgeError ``home-not-writable`` or ``planted-link``."""
    home.make_record(name, generation)
    write_text(path(home, name, generation), profile.text)


def text(home: Home, name: str, generation: int) -> str:
    """The YAML as built; raises EnvforgeError ``record-not-found`` or ``corrupt-record``."""
    return read_text(path(home, name, generation), what="the profile")
