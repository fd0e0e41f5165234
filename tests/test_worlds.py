"""Every world of `tests/worlds`, played with the real command, the real engine and real pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import runner, world


@pytest.mark.parametrize("name", world.names())
def test_world(name: str, tmp_path: Path) -> None:
    runner.play(name, tmp_path)
