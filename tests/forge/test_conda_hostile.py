"""Whatever a conda package says of its files, none is put outside of the environment, and the error says why."""

from __future__ import annotations

import bz2
import hashlib
import io
import ssl
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from engines.house import House
from kit import packages
from kit.channel import Channel, Package, Row
from kit.index import Index, serve

from envforge.model.errors import EnvforgeError
from envforge.system import http

EVIL = b"evil\n"


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, 0o755
    found.size = len(EVIL) if kind == tarfile.REGTYPE else 0
    return found


@dataclass(frozen=True, kw_only=True)
class Hostile(Package):
    """``entries``: more of its archive, files with `EVIL` in them; ``rows``: more paths that it claims to hold."""

    entries: tuple[tarfile.TarInfo, ...] = ()
    rows: tuple[str, ...] = ()

    def paths(self) -> list[Row]:
        digest = hashlib.sha256(EVIL).hexdigest()
        more = [
            {"_path": path, "path_type": "hardlink", "sha256": digest, "size_in_bytes": len(EVIL)} for path in self.rows
        ]
        return [*super().paths(), *more]

    def bytes(self) -> bytes:
        plain = io.BytesIO(bz2.decompress(super().bytes()))
        with tarfile.open(fileobj=plain, mode="a") as archive:
            for each in self.entries:
                archive.addfile(each, io.BytesIO(EVIL))
        return bz2.compress(plain.getvalue(), 1)


def hostile(name: str, *entries: tarfile.TarInfo, rows: tuple[str, ...] = (), **more: object) -> Hostile:
    return Hostile(name=name, version="1.0", entries=entries, rows=rows, **more)  # type: ignore[arg-type]


def cases(out: str) -> dict[str, Package]:
    """What the base is made to hold -> the package; ``out``: a folder with a file ``victim``."""
    inside: dict[str, str | bytes] = {"share/evil": EVIL}
    modules: dict[str, str | bytes] = {"site-packages/m.py": "def main(): pass\n"}
    found = [
        hostile("above", entry("../evil"), rows=("../evil",)),
        hostile("far-above", entry("x/../../../evil"), rows=("x/../../../evil",)),
        hostile("above-archive-only", entry("../evil")),
        hostile("rooted", entry(f"{out}/evil"), rows=(f"{out}/evil",)),
        hostile("rooted-there", rows=(f"{out}/victim",)),
        hostile("roundabout", rows=("../roundabout-1.0-0/share/evil",), files=inside),
        hostile("through-link", entry("door/evil"), rows=("door/evil",), links={"door": out}),
        hostile("out-of-link", entry("door", tarfile.SYMTYPE, out), rows=("door/victim",)),
        hostile("into-own-link", entry("door", tarfile.SYMTYPE, "share"), rows=("door/evil",), files=inside),
        hostile("hard-link", entry("share/evil", tarfile.LNKTYPE, f"{out}/victim"), rows=("share/evil",)),
        hostile("device", entry("evil", tarfile.CHRTYPE)),
        hostile("script", noarch="python", depends=("python",), files=modules, entry_points={"../../evil": "m:main"}),
        hostile("build", build="0/../../../evil"),
    ]
    return {each.name: each for each in found}


ALL = tuple(cases("/"))
HARMLESS = frozenset({"above-archive-only", "device"})
"""What is wrong with them is not unpacked."""
BY_THE_ENGINE = frozenset({"script", "build"})
"""Refused by rattler in its own words."""


@dataclass(frozen=True, kw_only=True)
class World:
    house: House
    out: Path
    url: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("hostile")
    out = root / "out"
    out.mkdir()
    (out / "victim").write_bytes(EVIL)
    channel = Channel(packages=[packages.python(), *cases(str(out)).values()])
    with pytest.MonkeyPatch.context() as patch, serve({"forge": channel, "pypi": Index()}) as server:
        patch.setenv("HOME", str(root))
        patch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read
        yield World(house=House(root, server, only=["pypi"]), out=out, url=server.url("forge"))


def strays(world: World) -> list[str]:
    """What lies where neither the cache keeps packages nor an environment is."""
    home = world.house.shop.home
    kept = (world.house.settings.cache / "conda/pkgs", *(home.prefix(name, 1) for name in home.environments()))
    found = (path for path in world.house.root.rglob("*evil*") if not any(path.is_relative_to(each) for each in kept))
    return [str(path) for path in found]


def built(world: World, name: str) -> EnvforgeError | None:
    conda = {"channels": [world.url], "packages": [name]}
    try:
        assert world.house.create([], name=name, backend="conda", conda=conda).exit == 0
    except EnvforgeError as error:
        return error
    return None


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_put_outside(world: World, name: str) -> None:
    before = (world.out / "victim").stat()
    error = built(world, name)
    assert strays(world) == []
    assert list(world.out.iterdir()) == [world.out / "victim"]
    after = (world.out / "victim").stat()
    assert (after.st_mode, after.st_nlink, after.st_mtime_ns) == (before.st_mode, before.st_nlink, before.st_mtime_ns)
    if name in HARMLESS:
        assert error is None
        return
    assert error is not None
    assert error.code == ("engine-failed" if name in BY_THE_ENGINE else "bad-package")
    assert "panicked" not in (error.cause or "")
    assert "evil" in (error.cause or "") or "victim" in (error.cause or "")
    assert world.house.shop.home.current(name) is None


def test_what_the_cache_holds_already_is_looked_at_again(world: World) -> None:
    for _ in range(2):
        error = built(world, "roundabout")
        assert error is not None
        assert (error.code, error.cause) == (
            "bad-package",
            "`roundabout-1.0-0.tar.bz2` holds `../roundabout-1.0-0/share/evil`",
        )


def test_a_python_whose_modules_would_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    python = replace(packages.python(), site_packages="../../../evil")
    with serve({"forge": Channel(packages=[python, packages.module("m", "1.0")]), "pypi": Index()}) as server:
        house = House(tmp_path, server, only=["pypi"])
        with pytest.raises(EnvforgeError) as caught:
            house.create([], backend="conda", conda={"channels": [server.url("forge")], "packages": ["m"]})
    assert (caught.value.code, caught.value.cause) == ("bad-package", f"`{python.filename}` holds `../../../evil`")
    assert not list(tmp_path.rglob("*evil*"))
