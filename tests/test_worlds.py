"""Every world of `tests/worlds`, played with the real command, the real engine and real pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import runner, world

_SLOW = {"file-truncated"}  # uv tries again, and waits longer every time


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _SLOW else []) for name in world.names()]
)
def test_world(name: str, tmp_path: Path) -> None:
    runner.play(name, tmp_path)
