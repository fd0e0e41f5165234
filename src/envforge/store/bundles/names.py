"""How the files of a bundle are called."""

from __future__ import annotations

PROFILE = "profile.yaml"
LOCK = "pylock.toml"
FILES = "files/"
MODELS = "models/"
"""Below it ``HUB/NAME/REVISION/``, and there ``record.json`` and ``files/PATH``."""


def file_name(sha256: str, file: str) -> str:
    """The name of a wheel or package in a bundle."""
    return f"{FILES}{sha256}/{file}"
