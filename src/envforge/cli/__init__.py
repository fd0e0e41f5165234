"""What the user types: words in, an exit status out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Do what the command line says and exit as the contract tells (``argv`` without the program's name)."""
    import sys  # noqa: PLC0415 - so that importing the room costs nothing

    from .entry import execute  # noqa: PLC0415 - as above

    sys.exit(execute(sys.argv[1:] if argv is None else argv))
