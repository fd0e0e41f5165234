"""A digest of what a distribution put into a prefix, which depends on neither prefix nor installer."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from .walk import Tree

# How installers start a script where the path of the interpreter is too long, or has blanks, for a first line.
_SHELL_TRICK = re.compile(rb"#!/bin/sh\n'''exec' [^\n]*\n' '''\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What goes into a distribution's digest: lines ``path,hash``, and what must be read from the disk for it."""

    lines: list[str] = field(default_factory=list)
    unhashed: list[tuple[str, str]] = field(default_factory=list)
    scripts: list[tuple[str, str]] = field(default_factory=list)

    def digest(self, tree: Tree) -> str:
        """The digest (hex); a path without a hash counts by its bytes, a script without its first line."""
        lines = set(self.lines)
        lines.update(f"{key},{tree.sha256(path) or 'absent'}" for key, path in self.unhashed)
        lines.update(f"{path},{_script(tree, path) or declared}" for path, declared in self.scripts)
        return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()


def _script(tree: Tree, path: str) -> str | None:
    """The digest of a script without its first line, which names the prefix; None for anything but a script."""
    stream = tree.open(path)
    if stream is None:
        return None
    with stream:
        if stream.read(2) != b"#!":
            return None
        text = b"#!" + stream.read()
    return f"script={hashlib.sha256(without_start(text)).hexdigest()}"


def without_start(text: bytes) -> bytes:
    """What follows the first line of a script; all of ``text`` where it is none."""
    if not text.startswith(b"#!"):
        return text
    trick = _SHELL_TRICK.match(text)
    return text[trick.end() :] if trick else text.partition(b"\n")[2]
