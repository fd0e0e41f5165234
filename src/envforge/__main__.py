"""``python -m envforge``: the same as the command ``envforge``."""

from __future__ import annotations

from envforge.cli import main

if __name__ == "__main__":
    main()
