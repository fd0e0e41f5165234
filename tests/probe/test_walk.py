from __future__ import annotations

import os
from pathlib import Path

from envforge.model.state import FileRow
from envforge.probe.claims import Claims, hexadecimal
from envforge.probe.walk import walk


def test_a_row_is_the_same_as_one_made_the_long_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    tree = walk(str(tmp_path), Claims(single={"file": (("me",), "file,sha256=AA")}))
    facts, link = (os.lstat(tmp_path / name) for name in ("file", "link"))
    assert tree.files() == (
        FileRow(path="file", size=1, mtime=facts.st_mtime_ns, inode=facts.st_ino, owners=("me",)),
        FileRow(path="link", size=4, mtime=link.st_mtime_ns, inode=link.st_ino, link="file"),
    )


def test_a_declared_hash_in_hexadecimal() -> None:
    assert hexadecimal("sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU") == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert hexadecimal("") is None
    assert hexadecimal("md5=abc") is None
    assert hexadecimal("sha256=A") is None
