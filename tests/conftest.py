"""What holds for every test: no law is judged by the clock of a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("envforge", deadline=None)
settings.load_profile("envforge")
