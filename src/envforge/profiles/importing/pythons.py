"""Which Python a foreign file asks for, in a profile's words."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

DEFAULT = "3.11"
"""The Python of a profile that names none."""
_EXACT = re.compile(r"(?:={0,3})\s*v?(3\.\d{1,2}(?:\.\d{1,3})?)(?:\.\*)?")
_OLD = re.compile(r"={0,3}\s*[12](\.\d+)*(\.\*)?")


def python(text: str) -> str | None:
    """``3.10``, ``3.10.13`` or a PEP 440 specifier for what conda, pip or a lock write; None where it is none.

    ``=3.10``, ``==3.10.*`` and ``3.10`` all come to ``3.10``.
    """
    stripped = text.strip()
    exact = _EXACT.fullmatch(stripped)
    if exact is not None:
        return exact[1]
    if not stripped or _OLD.fullmatch(stripped) or re.fullmatch(r"[\d.]+", stripped):
        return None
    # conda writes `3.8.*` beside a comma, and `=3.8`, where PEP 440 wants `==3.8.*`.
    parts = [part.strip() for part in stripped.split(",")]
    parts = [re.sub(r"^=?(\d[\d.]*?)(\.\*)?$", r"==\1.*", part) for part in parts]
    try:
        return str(SpecifierSet(",".join(parts))) or None
    except InvalidSpecifier:
        return None
