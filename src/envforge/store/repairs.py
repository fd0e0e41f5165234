"""The paths that a repair under way may touch: ``records/NAME/G/repair.json``, gone once it has come to its end."""

from __future__ import annotations

import json
from pathlib import Path

from envforge.model.repair import Mending

from .atomic import sync_folder, write_text
from .layout import Home


def _path(home: Home, name: str, generation: int) -> Path:
    return home.record(name, generation) / "repair.json"


def begin(home: Home, name: str, generation: int, plan: Mending) -> None:
    """Write down what is about to be touched. Raises EnvforgeError ``home-not-writable`` or ``planted-link``."""
    home.make_record(name, generation)
    document = {
        "restore": [file.path for file in (*plan.files, *plan.doubted)],
        "remove": list(plan.remove),
        "aside": list(plan.aside),
    }
    write_text(_path(home, name, generation), json.dumps(document, indent=1) + "\n")


def unfinished(home: Home, name: str, generation: int) -> bool:
    """Whether an earlier repair was killed."""
    return _path(home, name, generation).is_file()


def end(home: Home, name: str, generation: int) -> None:
    """It came to its end. Raises OSError."""
    _path(home, name, generation).unlink(missing_ok=True)
    sync_folder(home.record(name, generation))


def away(home: Home, name: str, generation: int) -> Path:
    """A folder, not made yet, for what this repair moves out of the prefix."""
    root = home.record(name, generation) / "aside"
    number = 1
    while (root / str(number)).exists():
        number += 1
    return root / str(number)
