"""Which modules a Python brings itself, by its version."""

from __future__ import annotations

import sys
from typing import Final

_ADDED: Final[dict[int, frozenset[str]]] = {
    9: frozenset({"graphlib", "zoneinfo"}),
    11: frozenset({"tomllib"}),
    14: frozenset({"annotationlib", "compression"}),
}
"""Minor version -> top-level modules that came with it. Source: What's New In Python 3.9 to 3.14."""

_REMOVED: Final[dict[int, frozenset[str]]] = {
    9: frozenset({"_dummy_thread", "dummy_threading"}),
    10: frozenset({"formatter", "parser", "symbol"}),
    11: frozenset({"binhex"}),
    12: frozenset({"asynchat", "asyncore", "distutils", "imp", "smtpd"}),
    13: frozenset(
        {"aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
         "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"}
    ),
}  # fmt: skip
"""Minor version -> top-level modules that it no longer has. Source: as above; PEP 594, PEP 632."""

ALWAYS: Final = (sys.stdlib_module_names | {"__main__"}).difference(*_ADDED.values(), *_REMOVED.values())
"""What every Python that an environment can have brings."""


def standard(python: str) -> frozenset[str]:
    """The top-level modules of the standard library of ``python`` (``3.10.13``), on any platform."""
    minor = int(python.split(".")[1])
    added = (names for since, names in _ADDED.items() if since <= minor)
    kept = (names for until, names in _REMOVED.items() if minor < until)
    return ALWAYS.union(*added, *kept)
