from __future__ import annotations

import os
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from kit.wheels import Wheel
from probe.conftest import Install
from probe.recorded import snapshot_of

from envforge.probe.files import Side, compare
from envforge.probe.prefix import look

TINY = Wheel(name="tiny", version="1.0", files={"tiny/data.txt": "data\n"}, scripts={"tiny": "tiny:main"})
DATA = "tiny/data.txt"


def recorded(prefix: Path) -> Side:
    return Side.recorded(prefix, snapshot_of(look(prefix)))


def now(prefix: Path, before: Side | None = None) -> Side:
    return Side.present(prefix, before.snapshot if before is not None else None, look(prefix))


def kinds(before: Side, after: Side) -> dict[str, str]:
    return {each.path.partition("site-packages/")[2] or each.path: each.kind for each in compare(before, after)}


@pytest.fixture
def tiny(venv: Path, install: Install) -> Path:
    install(venv, TINY)
    return venv


@pytest.fixture
def twin(tiny: Path, tmp_path: Path) -> Path:
    """The same built once more elsewhere, with its own inodes, under another minor version of Python."""
    other = tmp_path / "twin"
    shutil.copytree(tiny, other, symlinks=True)
    for script in (other / "bin").iterdir():
        if not script.is_symlink():
            script.write_bytes(script.read_bytes().replace(os.fsencode(tiny), os.fsencode(other)))
    (lib,) = (other / "lib").glob("python*")
    lib.rename(lib.with_name("python3.99"))
    return other


def test_a_moment_differs_in_nothing_from_itself(tiny: Path) -> None:
    before = recorded(tiny)
    assert compare(before, before) == ()
    assert compare(before, now(tiny, before)) == ()
    assert compare(now(tiny), now(tiny)) == ()


def test_of_one_prefix_every_file_counts(tiny: Path, site: Path) -> None:
    before = recorded(tiny)
    (site / DATA).write_text("DATA\n")
    (site / "tiny/__init__.py").unlink()
    (site / "tiny/new.py").touch()
    (site / "tiny-1.0.dist-info/INSTALLER").write_text("me")
    (site / "tiny/__pycache__").mkdir()
    (site / "tiny/__pycache__/x.cpython-311.pyc").touch()
    found = {each.path.partition("site-packages/")[2]: each for each in compare(before, now(tiny, before))}
    assert {path: each.kind for path, each in found.items()} == {
        DATA: "changed",
        "tiny/__init__.py": "removed",
        "tiny/new.py": "added",
        "tiny-1.0.dist-info/INSTALLER": "changed",
    }
    change = found[DATA]
    assert change.owners == ("tiny",)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.size, change.before.sha256) == (5, sha256(b"data\n").hexdigest())
    assert (change.after.size, change.after.sha256) == (5, sha256(b"DATA\n").hexdigest())
    assert (found["tiny/new.py"].before, found["tiny/__init__.py"].after) == (None, None)


def test_another_time_or_inode_is_no_difference(tiny: Path, site: Path) -> None:
    before = recorded(tiny)
    os.utime(site / DATA, ns=(1, 1))
    copy = site / "copy"
    shutil.copy(site / "tiny/__init__.py", copy)
    copy.replace(site / "tiny/__init__.py")
    assert compare(before, now(tiny, before)) == ()


@pytest.mark.parametrize("alive", [False, True])
def test_two_prefixes_with_the_same_in_them_do_not_differ(tiny: Path, twin: Path, alive: bool) -> None:
    first, second = (now(prefix) if alive else recorded(prefix) for prefix in (tiny, twin))
    assert kinds(first, second) == {}
    assert kinds(second, first) == {}
    assert kinds(first, now(twin)) == {}


def test_a_script_differs_by_what_follows_its_first_line(tiny: Path, twin: Path) -> None:
    before, there = recorded(tiny), recorded(twin)
    with (twin / "bin/tiny").open("a") as stream:
        stream.write("# more\n")
    assert kinds(before, now(twin, there)) == {"bin/tiny": "changed"}
    assert kinds(before, there) == {}


def test_a_file_outside_of_site_packages_counts_without_the_path_of_its_prefix(tiny: Path, twin: Path) -> None:
    for prefix in (tiny, twin):
        (prefix / "share").mkdir()
        (prefix / "share/kernel.json").write_text(f"start {prefix}/bin/python")
        (prefix / "share/other.json").write_text(f"start {prefix.name}")
        (prefix / "share/binary").write_bytes(b"\1" + f"{prefix}/lib:{prefix}".encode().ljust(500, b"\0") + b"\2")
        (prefix / "share/padded").write_bytes(f"{prefix}/lib".encode() + b"\0" * len(prefix.name) + b"x")
    with (twin / "share/padded").open("ab") as stream:
        stream.write(b"y")
    assert kinds(now(tiny), now(twin)) == {"share/other.json": "changed", "share/padded": "changed"}


def test_what_installers_and_the_making_of_a_venv_write_is_left_out(tiny: Path, twin: Path) -> None:
    (info,) = twin.glob("lib/*/site-packages/tiny-1.0.dist-info")
    (info / "INSTALLER").write_text("pip")
    (info / "direct_url.json").write_text("{}")
    (twin / "pyvenv.cfg").write_text("home = /elsewhere\n")
    (twin / "bin/activate").write_text("other")
    for prefix in (tiny, twin):
        (prefix / "conda-meta").mkdir()
        (prefix / "conda-meta/history").write_text(str(prefix.name))
        (prefix / "conda-meta/some-1.0-0.json").write_text(str(prefix.name))
        (prefix / "conda-meta/state").write_text(str(prefix.name))
    assert kinds(now(tiny), now(twin)) == {"conda-meta/state": "changed"}


def test_of_a_prefix_that_is_gone_the_records_tell(tiny: Path, twin: Path) -> None:
    before, after = recorded(tiny), recorded(twin)
    shutil.rmtree(tiny)
    assert kinds(before, after) == {}
    (data,) = twin.glob(f"lib/*/site-packages/{DATA}")
    data.write_text("DATA\n")
    (module,) = twin.glob("lib/*/site-packages/tiny/__init__.py")
    module.write_text("other = 1\n" * 9)
    assert kinds(before, now(twin, after)) == {DATA: "unknown", "tiny/__init__.py": "changed"}


def test_another_build_with_the_same_sizes_is_unknown_once_its_bytes_are_gone(tiny: Path, install: Install) -> None:
    before = recorded(tiny)
    install(tiny, replace(TINY, build="2", files={DATA: "DATA\n"}))
    after = recorded(tiny)
    assert kinds(before, after)[DATA] == "unknown"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_looked_at_is_not_said_to_be_gone(tiny: Path, site: Path) -> None:
    before = recorded(tiny)
    (site / "tiny").chmod(0)
    try:
        found = kinds(before, now(tiny, before))
    finally:
        (site / "tiny").chmod(0o700)
    assert found == {DATA: "unknown", "tiny/__init__.py": "unknown"}
