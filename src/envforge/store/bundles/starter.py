"""The beginning of a bundle, by which it is a shell script without ceasing to be a tar.

A tar may begin with a global header of the pax format, whose name nobody reads and whose contents, here a comment, are
passed over by every reader: no odd file is listed or unpacked. A shell reads its name as the first line. That line ends
before any of the header's zero bytes, takes the script out of the comment and never comes back, so that the shell sees
nothing of the rest.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

from envforge.model.bundle import Program
from envforge.model.errors import EnvforgeError

BLOCK = tarfile.BLOCKSIZE
_FIRST, _LAST = "# A bundle of envforge.", "# end"
# Of a file that is none, such as the shell itself when it reads its standard input, nothing is run.
_LINE = f"""eval "$(sed -n '/^{_LAST}/q;/^# A bundle/,$p' "$0")";echo 'run it as sh FILE'>&2;exit 1\n"""
_MANIFEST = re.compile(r"^manifest='([0-9a-f]{64})'$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z0-9._+!-]+", re.ASCII)


def head(program: Program, manifest: str) -> bytes:
    """The bytes before the first file; ``manifest`` is its sha256 (hex), which the script insists on."""
    folder = Path(__file__).parent
    text = (folder / "start.sh").read_text(encoding="utf-8")
    text = text[text.index(_FIRST) :]  # what is before that is for those who check the script
    values = {"VERSION": program.version, "ABI": program.abi, "PYTHON": program.python, "MANIFEST": manifest}
    for name, value in values.items():
        if not _PLAIN.fullmatch(value):
            raise EnvforgeError("bad-program", f"`{value}` cannot stand in the script of a bundle")
        text = text.replace(f"@{name}@", value)
    text = text.replace("@CODE@", (folder / "start.py").read_text(encoding="utf-8"))
    contents = _comment(f"\n{text}{_LAST}\n".encode())
    info = tarfile.TarInfo(_LINE)
    info.type, info.size = tarfile.XGLTYPE, len(contents)
    return info.tobuf(tarfile.USTAR_FORMAT) + contents


def manifest_of(comment: str) -> str | None:
    """The sha256 of the manifest that a bundle's comment states; None where it is no bundle's."""
    match = _MANIFEST.search(comment)
    return match[1] if match is not None and comment.lstrip().startswith(_FIRST) else None


def _comment(text: bytes) -> bytes:
    """One pax record that fills whole blocks."""
    around = len(b" comment=\n")
    size = -(-(len(text) + around + 8) // BLOCK) * BLOCK
    digits = b"%d" % size
    return digits + b" comment=" + text.ljust(size - len(digits) - around, b"\n") + b"\n"
