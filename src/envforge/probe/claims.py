"""Who claims to own which path of a prefix, as the RECORDs say."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """All rows of all RECORDs of a prefix.

    ``single``: path -> its one owner (as a 1-tuple) and its row, ``path,hash``. ``shared``: path -> owner -> the hash
    as the RECORD writes it, empty if none. ``outside``: owner -> rows that leave the prefix, which are not
    followed. ``moved``: path -> owner -> the hash of a file of its own that lies elsewhere, since another's lies there.
    Bytecode without a hash belongs to nobody.
    """

    single: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    shared: dict[str, dict[str, str]] = field(default_factory=dict)
    outside: dict[str, list[str]] = field(default_factory=dict)
    moved: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, path: str, owner: tuple[str, ...], row: str) -> None:
        """One more row; ``owner`` as a 1-tuple."""
        if path in self.shared:
            self.shared[path][owner[0]] = declared(row)
            return
        first = self.single.get(path)
        if first is None or first[0] == owner:
            self.single[path] = (owner, row)
            return
        del self.single[path]
        self.shared[path] = {first[0][0]: declared(first[1]), owner[0]: declared(row)}

    def rivals(self) -> dict[str, dict[str, str]]:
        """Path -> owner -> hash, as of ``shared``, of all that several bring, be it moved away or not."""
        found = {path: dict(owners) for path, owners in self.shared.items()}
        for path, owners in self.moved.items():
            there = {owner: declared(row) for (owner,), row in [self.single[path]]} if path in self.single else {}
            found[path] = {**found.get(path, there), **owners}
        return found

    def __contains__(self, path: object) -> bool:
        return path in self.single or path in self.shared


def declared(row: str) -> str:
    """The hash of ``path,hash``."""
    return row[row.rfind(",") + 1 :]


def hexadecimal(value: str) -> str | None:
    """The sha256 (hex) that ``sha256=BASE64`` declares; None for none or another algorithm."""
    algorithm, _, encoded = value.partition("=")
    if algorithm != "sha256":
        return None
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
    except (binascii.Error, ValueError):
        return None
