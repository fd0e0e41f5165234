"""METADATA of what is installed, as it lies there."""

from __future__ import annotations

from collections.abc import Mapping
from email.parser import BytesHeaderParser
from pathlib import Path

from packaging.utils import canonicalize_name


def metadata(prefix: Path) -> Mapping[str, bytes]:
    """Canonical name -> METADATA of every distribution in the prefix; what cannot be read is left out."""
    found = {}
    for path in sorted(prefix.glob("lib/python3*/site-packages/*.dist-info/METADATA")):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        name = BytesHeaderParser().parsebytes(data.partition(b"\n\n")[0] + b"\n\n")["Name"]
        if name:
            found[str(canonicalize_name(str(name)))] = data
    return found
