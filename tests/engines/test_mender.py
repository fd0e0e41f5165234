from __future__ import annotations

import os
from pathlib import Path

import pytest

from envforge.engines.mender import Mender
from envforge.model.errors import EnvforgeError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "env"
    site = folder / "lib/python3.11/site-packages"
    (site / "six/__pycache__").mkdir(parents=True)
    (site / "six/__init__.py").write_text("old")
    (site / "six/__pycache__/__init__.cpython-311.pyc").write_bytes(b"")
    return folder


def mender(root: Path) -> Mender:
    return Mender(root, beside=root.parent / "beside", away=root.parent / "away")


def new(root: Path, text: str = "new") -> Path:
    (root.parent / "beside").mkdir(exist_ok=True)
    file = root.parent / "beside/file"
    file.write_text(text)
    return file


def test_a_file_takes_the_place_of_another_and_its_bytecode_goes(root: Path) -> None:
    path = "lib/python3.11/site-packages/six/__init__.py"
    mender(root).move_in(new(root), path)
    assert (root / path).read_text() == "new"
    assert list((root / path).parent.glob("__pycache__/*")) == []


def test_across_file_systems_it_is_copied_and_then_renamed(root: Path) -> None:
    elsewhere = Path("/dev/shm")  # noqa: S108 - another file system, where there is one
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == root.stat().st_dev:
        pytest.skip("there is no other file system here")
    source = elsewhere / f"envforge-{os.getpid()}"
    source.write_text("new")
    try:
        (root / ".envforge-repair").write_text("what a killed repair left")
        mender(root).move_in(source, "bin/tool")
    finally:
        source.unlink(missing_ok=True)
    assert (root / "bin/tool").read_text() == "new"
    assert not (root / ".envforge-repair").exists()


def test_symlinks_in_the_way_are_moved_aside_and_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "share").symlink_to(outside)
    mender(root).move_in(new(root), "share/doc/x")
    assert (root / "share/doc/x").read_text() == "new"
    assert list(outside.iterdir()) == []
    assert (tmp_path / "away/share").is_symlink()


def test_nothing_is_removed_behind_a_symlink(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (root / "share").symlink_to(outside)
    work = mender(root)
    work.remove("share/mine")
    work.set_aside("share/mine")
    work.tidy()
    assert (outside / "mine").read_text() == "mine"
    work.remove("share")
    assert not (root / "share").is_symlink()
    assert (outside / "mine").exists()


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", ""])
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    work = mender(root)
    with pytest.raises(EnvforgeError, match="leads out"):
        work.move_in(new(root), path)
    with pytest.raises(EnvforgeError, match="leads out"):
        work.remove(path)
    with pytest.raises(EnvforgeError, match="leads out"):
        work.set_aside(path)


def test_folders_that_are_empty_but_for_bytecode_go_with_their_last_file(root: Path) -> None:
    work = mender(root)
    work.remove("lib/python3.11/site-packages/six/__init__.py")
    work.tidy()
    assert list((root / "lib/python3.11/site-packages").iterdir()) == []
    assert root.is_dir()
