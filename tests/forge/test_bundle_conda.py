"""A bundle of conda packages brings its own Python, and builds elsewhere what the channel gave."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines.house import House
from forge.packed import HELLO, IDNA, PYTHON, SIX, STEPS, TOOL, house, options, served
from kit.channel import Package
from kit.wheels import Wheel

from envforge.forge.audit import audit
from envforge.forge.bundle import bundle
from envforge.forge.from_bundle import create_bundled
from envforge.forge.rebuild import rebuild
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Severity
from envforge.model.progress import Note
from envforge.store import snapshots
from envforge.store.bundles.reading import opened
from envforge.system import http

PACKAGES = (PYTHON, TOOL, HELLO)
SMOKE = [{"import": ["six", "hello", "idna"]}]


def plain(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("HOME", str(home))
    patch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain(monkeypatch, tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # an audit tells of it


@dataclass(frozen=True, kw_only=True)
class Made:
    """``file``: the bundle of the environment ``demo`` of ``house``; channel and index, which lay below ``url``, are
    gone since.
    """

    house: House
    file: Path
    url: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Made once, since envforge itself is packed into it."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, served() as server:
        plain(patch, root)
        first = house(root, server)
        assert first.create(STEPS, smoke=SMOKE, **options(server)).exit == 0
        answer = bundle(first.shop, "demo", output=str(root / "demo.tar")).data
        assert (answer.snapshot, answer.packages, answer.wheels, answer.lost) == ("demo/1.3", 3, 2, ())
        assert answer.python_from == "bundle"
        again = bundle(first.shop, "demo", output=str(root / "again.tar")).data
        assert again.sha256 == answer.sha256
        return Made(house=first, file=root / "demo.tar", url=server.url("forge"))


def contents(made: House) -> dict[str, tuple[str, str | None]]:
    snapshot = snapshots.latest(made.shop.home, "demo", made.shop.home.current("demo") or 0)
    assert snapshot is not None
    return {key: (item.version, item.sha256) for key, item in snapshot.state.items()}


def names(files: Sequence[Package | Wheel]) -> list[str]:
    return sorted(each.filename for each in files)


def test_the_archives_lie_in_it_as_the_channel_gave_them(made: Made) -> None:
    with opened(made.file) as found:
        assert (found.manifest.python_from, found.manifest.python) == ("bundle", PYTHON.version)
        assert found.manifest.needs.architecture is not None
        for package in PACKAGES:
            with found.files[hashlib.sha256(package.bytes()).hexdigest()].open() as file:
                assert file.read() == package.bytes()


def test_the_same_is_built_elsewhere_without_channel_and_index(tmp_path: Path, made: Made) -> None:
    # Whatever went to the network would end here.
    other = house(tmp_path, made.house.server, proxy="http://127.0.0.1:9")
    file = tmp_path / "carried.tar"
    shutil.copy(made.file, file)
    built = create_bundled(other.shop, file)
    assert (built.exit, built.data.switched, [check.ok for check in built.data.smoke]) == (0, True, [True])
    assert contents(other) == contents(made.house)
    prefix = other.shop.home.link("demo").resolve()
    for package in PACKAGES:
        record = json.loads((prefix / f"conda-meta/{package.name}-{package.version}-{package.build}.json").read_text())
        assert record["url"] == f"{made.url}/{package.subdir}/{package.filename}"
        assert record["channel"].rstrip("/") == made.url
        assert record["sha256"] == hashlib.sha256(package.bytes()).hexdigest()
    assert str(prefix) in (prefix / "share/tool/text").read_text()
    found = audit(other.shop, "demo", deep=True).findings
    assert [each for each in found if each.severity is not Severity.INFO] == []
    # What was brought is in the cache now.
    file.unlink()
    assert rebuild(other.offline().shop, "demo").exit == 0
    assert contents(other) == contents(made.house)


@pytest.mark.slow
def test_a_damaged_copy_in_the_cache_is_replaced_from_it(tmp_path: Path, made: Made) -> None:
    other = house(tmp_path, made.house.server)
    create_bundled(other.shop, made.file)
    [kept] = other.settings.cache.glob("conda/pkgs/hello-*/site-packages/hello/__init__.py")
    sound = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(b"# " + sound)
    assert create_bundled(other.shop, made.file, replace_it=True).exit == 0
    assert kept.read_bytes() == sound
    assert any("damaged copy of `hello`" in each.text for each in other.told if isinstance(each, Note))


def test_nothing_is_built_from_a_package_with_a_changed_byte(tmp_path: Path, made: Made) -> None:
    data = bytearray(made.file.read_bytes())
    data[data.index(HELLO.bytes()) + 40] ^= 1
    file = tmp_path / "x.tar"
    file.write_bytes(data)
    other = house(tmp_path / "other", made.house.server)
    with pytest.raises(EnvforgeError, match="nothing of it was used") as caught:
        create_bundled(other.shop, file)
    assert caught.value.code == "bundle-damaged"
    assert HELLO.filename in (caught.value.cause or "")
    assert not other.shop.home.environments()
    assert not (other.settings.cache / "conda").exists()


@pytest.mark.slow
def test_without_network_every_archive_that_is_not_here_is_named_and_what_was_fetched_is_taken(tmp_path: Path) -> None:
    with served() as server:
        first = house(tmp_path, server)
        first.create(STEPS, **options(server))
        server.withdraw("forge", f"*/{TOOL.filename}")
        with pytest.raises(EnvforgeError) as caught:
            bundle(first.shop, "demo", output=str(tmp_path / "demo.tar"))
        assert caught.value.code == "bundle-incomplete"
        assert (caught.value.cause or "").startswith(f"`{TOOL.filename}`: `{TOOL.filename}` cannot be had")
        assert "status 404" in (caught.value.cause or "")
    with pytest.raises(EnvforgeError) as caught:
        bundle(first.offline().shop, "demo", output=str(tmp_path / "demo.tar"))
    assert [line.split("`")[1] for line in (caught.value.cause or "").splitlines()] == [TOOL.filename]
    with pytest.raises(EnvforgeError) as caught:
        bundle(first.offline().shop, "demo", output=str(tmp_path / "other.tar"))
    lines = (caught.value.cause or "").splitlines()
    assert [line.split("`")[1] for line in lines] == names([*PACKAGES, SIX, IDNA])


@pytest.mark.slow
def test_a_shell_builds_it(tmp_path: Path, made: Made) -> None:
    shell = shutil.which("dash") or "/bin/sh"
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ENVFORGE_PYTHON": sys.executable, "COLUMNS": "400"}
    command = (shell, str(made.file), "--home", "there", "--name", "air")
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    program = next((tmp_path / "there/program").glob("envforge-*/bin/envforge"))
    checked = subprocess.run(
        (str(program), "--home", "there", "audit", "air", "--deep"),
        cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
