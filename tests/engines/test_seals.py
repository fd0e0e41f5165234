"""The walk that closes a prefix: nothing outside is reached, nothing inside is forgotten, whatever lies there."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.plain import need_plain, plainly
from kit.wheels import Wheel
from uv import find_uv_bin

import envforge
from envforge.engines import seals
from envforge.forge.remove import delete


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): mode(path) for path in sorted([folder, *folder.rglob("*")])}


@pytest.fixture
def prefix(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "prefix"
    (place / "lib" / "site").mkdir(parents=True)
    (place / "bin").mkdir()
    for path, bits in (("lib/site/a.py", 0o664), ("bin/tool", 0o755), ("bin/closed", 0o444)):
        (place / path).write_text("x = 1\n", encoding="utf-8")
        (place / path).chmod(bits)
    yield place
    delete(place)  # pytest cannot take away what is closed


def test_closed_and_opened_again(prefix: Path) -> None:
    before = modes(prefix)
    tally = seals.close(prefix)
    assert (tally.files, tally.folders, tally.shared, tally.failed) == (2, 4, 0, [])
    assert modes(prefix) == {path: bits & ~0o222 for path, bits in before.items()}
    again = seals.close(prefix)
    assert (again.files, again.folders) == (0, 0)
    tally = seals.open_(prefix)
    assert (tally.files, tally.folders, tally.failed) == (3, 4, [])
    assert {path: bits & 0o333 for path, bits in modes(prefix).items()} == {
        ".": 0o311, "bin": 0o311, "bin/closed": 0o200, "bin/tool": 0o311,
        "lib": 0o311, "lib/site": 0o311, "lib/site/a.py": 0o200,
    }  # fmt: skip


def test_a_file_that_others_hold_is_closed_and_stays_so(prefix: Path, tmp_path: Path) -> None:
    shared = tmp_path / "cached"
    os.link(prefix / "lib/site/a.py", shared)
    assert seals.close(prefix).shared == 1
    assert mode(shared) == 0o444
    moved = shared.stat().st_ctime_ns
    assert seals.open_(prefix).shared == 1
    assert (mode(shared), shared.stat().st_ctime_ns) == (0o444, moved)
    assert mode(prefix / "lib/site") == 0o755


def test_symlinks_lead_nowhere(prefix: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "file").write_text("", encoding="utf-8")
    before = modes(outside)
    for name, target in (
        ("folder", outside),
        ("file", outside / "file"),
        ("nothing", Path("gone")),
        ("up", Path("..")),
    ):
        (prefix / "lib" / name).symlink_to(target)
    (prefix / "lib64").symlink_to("lib")
    for change in (seals.close, seals.open_):
        assert change(prefix).failed == []
        assert modes(outside) == before
        assert mode(tmp_path) & 0o200


@pytest.mark.parametrize("change", [seals.close, seals.open_])
@pytest.mark.parametrize("name", ["site", "a.py"])
def test_a_symlink_that_takes_a_place_meanwhile(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Path], seals.Tally]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("", encoding="utf-8")
    for bits, place in ((0o577, outside), (0o466, outside / "file"), (0o577, prefix / "lib/site")):
        place.chmod(bits)
    (prefix / "lib/site/a.py").chmod(0o466)
    before, real = modes(outside), os.open
    swapped: list[Path] = []

    def swapping(path: Any, *arguments: Any, **more: Any) -> int:
        if path == name:
            place = prefix / "lib/site" if name == "site" else prefix / "lib/site/a.py"
            place.parent.chmod(0o755)
            place.rename(away := place.with_name("away"))
            swapped.append(away)
            place.symlink_to(outside if name == "site" else outside / "file")
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", swapping)
    change(prefix)
    monkeypatch.undo()
    assert len(swapped) == 1
    assert modes(outside) == before


def test_a_prefix_that_is_a_symlink_is_refused(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(prefix)
    with pytest.raises(OSError, match="link"):
        seals.close(tmp_path / "link")
    assert mode(prefix) & 0o200


def test_pipes_and_sockets_are_passed_by(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(prefix / "pipe", 0o644)
    monkeypatch.chdir(prefix)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        before = mode(prefix / "pipe"), mode(prefix / "socket")
        assert seals.close(prefix).failed == []
        assert seals.open_(prefix).failed == []
        assert (mode(prefix / "pipe"), mode(prefix / "socket")) == before


def test_strange_names_and_deep_folders(prefix: Path) -> None:
    names = [b"-rf", b"a\nb", b"\xff\xfe", b" ", b"*", b"x" * 255]
    for name in names:
        folder = prefix / os.fsdecode(name)
        folder.mkdir()
        (folder / os.fsdecode(name)).touch()
    deep = prefix / "lib"
    for _ in range(150):
        deep /= "d"
        deep.mkdir()
    (deep / "file").write_text("", encoding="utf-8")
    tally = seals.close(prefix)
    assert (tally.files, tally.failed) == (2 + len(names) + 1, [])
    assert mode(deep / "file") == 0o444
    assert not any(bits & 0o222 for bits in modes(prefix).values())
    assert seals.open_(prefix).failed == []


_WALK = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from envforge.engines import seals
tally = getattr(seals, sys.argv[2])(Path(sys.argv[3]))
print(tally.files, tally.folders, *tally.failed, sep=";")
"""


def walk(change: str, prefix: Path) -> str:
    """As a plain user who owns what lies there, unless it was given away."""
    source = str(Path(envforge.__file__).parent.parent)
    command = [sys.executable, "-c", _WALK, source, change, str(prefix)]
    return subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=plainly).stdout.strip()


def test_what_its_owner_cannot_read_is_closed_too(prefix: Path, tmp_path: Path) -> None:
    need_plain(tmp_path)
    hidden = prefix / "hidden"
    (hidden / "inner").mkdir(parents=True)
    (hidden / "inner/file").write_text("", encoding="utf-8")
    (hidden / "inner/file").chmod(0o200)
    hidden.chmod(0o200)
    assert walk("close", prefix) == "3;6"
    assert mode(hidden) == 0
    hidden.chmod(0o700)
    assert (mode(hidden / "inner"), mode(hidden / "inner/file")) == (0o555, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_somebody_else_owns_is_named(prefix: Path, tmp_path: Path) -> None:
    need_plain(tmp_path)
    for path in ("lib/site", "bin/tool"):
        os.chown(prefix / path, 65534, 65534)
    counted = walk("close", prefix).split(";")
    assert counted[:2] == ["1", "3"]
    assert sorted(counted[2:]) == ["bin/tool: Operation not permitted", "lib/site: Operation not permitted"]


# -- the marker --------------------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A Python of its own, as conda makes one: no venv, its stdlib (by symlinks) inside the prefix."""
    base, version = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
    stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": str(base)}))
    place = tmp_path / "own"
    library = place / "lib" / version
    (library / "site-packages").mkdir(parents=True)
    (place / "bin").mkdir()
    for entry in stdlib.iterdir():
        if entry.name not in {"site-packages", "dist-packages", "EXTERNALLY-MANAGED"}:
            (library / entry.name).symlink_to(entry)
    shutil.copy2(base / "bin" / version, place / "bin/python")
    code = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    found = subprocess.run([place / "bin/python", "-I", "-c", code], check=False, capture_output=True, text=True)
    if found.stdout.strip() != str(library):
        pytest.skip("the Python of these tests cannot be moved")
    return place


def test_pip_and_uv_heed_the_marker_and_say_what_to_do(own: Path, tmp_path: Path) -> None:
    import pip

    library = next((own / "lib").glob("python3*"))
    (library / "site-packages/pip").symlink_to(Path(pip.__file__).parent)
    wheel = tmp_path / Wheel(name="six", version="1.0.0").filename
    wheel.write_bytes(Wheel(name="six", version="1.0.0").bytes())
    python = str(own / "bin/python")
    with_pip = [python, "-I", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", str(wheel)]
    with_uv = [find_uv_bin(), "pip", "install", "--no-config", "--offline", "--cache-dir", str(tmp_path / "cache")]
    with_uv += ["--python", python, str(wheel)]
    seals.mark(own, "It is kept.\n\nCall\n\n    envforge unseal demo\n\nfirst: 100%.\n")
    for command in (with_pip, with_uv):
        refused = subprocess.run(command, check=False, capture_output=True, text=True, env={"HOME": str(tmp_path)})
        assert refused.returncode != 0
        for text in ("It is kept.", "envforge unseal demo", "first: 100%."):
            assert text in refused.stdout + refused.stderr
    seals.unmark(own)
    for command in (with_pip, with_uv):
        subprocess.run(command, check=True, capture_output=True, env={"HOME": str(tmp_path)})


def library(prefix: Path) -> Path:
    """Makes what a marker is looked for beside."""
    place = prefix / "lib/python3.11"
    place.mkdir(parents=True)
    (place / "os.py").touch()
    (place.parent / "python3.1").symlink_to("python3.11")
    return place


def test_a_marker_comes_and_goes_with_the_seal(tmp_path: Path) -> None:
    place = library(tmp_path)
    for _ in range(2):
        seals.mark(tmp_path, "why")
    assert [path.name for path in place.iterdir() if path.name != "os.py"] == ["EXTERNALLY-MANAGED"]
    for _ in range(2):
        seals.unmark(tmp_path)
    assert [path.name for path in place.iterdir()] == ["os.py"]


def test_a_marker_of_somebody_else_stays(tmp_path: Path) -> None:
    marker = library(tmp_path) / "EXTERNALLY-MANAGED"
    marker.write_text("[externally-managed]\nError=mine\n", encoding="utf-8")
    seals.mark(tmp_path, "why")
    seals.unmark(tmp_path)
    assert marker.read_text(encoding="utf-8") == "[externally-managed]\nError=mine\n"


@pytest.mark.parametrize("kind", ["venv", "linked"])
def test_no_marker_where_none_is_heeded_or_others_would_meet_it(tmp_path: Path, kind: str) -> None:
    prefix = tmp_path / "prefix"
    place = library(prefix if kind == "venv" else tmp_path / "system")
    if kind == "venv":
        (prefix / "pyvenv.cfg").touch()
    else:
        prefix.mkdir()
        (prefix / "lib").symlink_to(tmp_path / "system/lib")
    seals.mark(prefix, "why")
    assert [path.name for path in place.iterdir()] == ["os.py"]
