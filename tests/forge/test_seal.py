"""A sealed environment keeps out whoever changes it by hand, and nothing of what envforge does with it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forge import small_home
from kit import packages
from kit.channel import Channel
from kit.check import ended
from kit.cli import Cli, finish
from kit.index import Index, Server, serve
from kit.plain import need_plain, plainly
from kit.wheels import Wheel
from uv import find_uv_bin

import envforge
from envforge.forge import sealing
from envforge.forge.generations import sealed
from envforge.forge.remove import delete
from envforge.forge.seal import seal, unseal
from envforge.forge.shop import Shop
from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.model.progress import Note, Progress
from envforge.store import locking
from envforge.store.journal import Journal
from envforge.store.layout import Home

SIX = Wheel(name="six", version="1.0.0", files={"six/broken.py": "def (:\n"})
SEVEN = Wheel(name="six", version="2.0.0")
NEW = Wheel(name="new", version="1.0.0", scripts={"new": "new:main"})


@pytest.fixture(autouse=True)
def leave(tmp_path: Path) -> Iterator[None]:
    """pytest cannot take away what is closed."""
    yield
    for place in tmp_path.iterdir():
        delete(place) if place.is_dir() else place.unlink()


def profile(cli: Cli, server: Server, name: str = "demo", **more: Any) -> None:
    steps = more.pop("steps", [{"name": "all", "install": ["six<2"]}])
    cli.profile(server.url("pypi"), steps, name, **more)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server]]:
    """An index, and a user who is bound by permissions."""
    need_plain(tmp_path)
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, NEW])}) as server:
        cli = Cli(root=tmp_path, plain=True)
        profile(cli, server)
        yield cli, server


def writable(folder: Path) -> list[str]:
    """What has write permission for anybody, symlinks left out."""
    found = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return [str(path.relative_to(folder)) for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o222]


def clean(cli: Cli, *names: str, deep: bool = True) -> None:
    for name in names:
        assert ended(cli.run("audit", name, *(["--deep"] if deep else []))).data["events"] == []


def is_sealed(cli: Cli, name: str = "demo") -> bool:
    """Whether the generation in use is, as the records say and as the disk does."""
    prefix = cli.link(name).resolve()
    recorded = sealed(Home(cli.home, cli.home / "cache"), name, int(prefix.name))
    assert recorded is not bool(writable(prefix))
    return recorded


def install(cli: Cli, tmp_path: Path, tool: str, wheel: Wheel) -> subprocess.CompletedProcess[str]:
    """As a user types it, in spite of envforge."""
    place = tmp_path / wheel.filename
    place.write_bytes(wheel.bytes())
    python = str(cli.link() / "bin/python")
    pip = [python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", str(place)]
    uv = [find_uv_bin(), "pip", "install", "--offline", "--cache-dir", str(tmp_path / "uv"), "--python", python]
    command = pip if tool == "pip" else [*uv, str(place)]
    variables = {"HOME": str(tmp_path), "PATH": os.defpath, "UV_NO_CONFIG": "1"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=variables, preexec_fn=plainly)


@pytest.mark.slow
def test_nobody_changes_it_by_hand_until_it_is_opened(house: tuple[Cli, Server], tmp_path: Path) -> None:
    cli, _ = house
    ended(cli.run("create", "demo"))
    ended(cli.run("create", "demo", "--name", "neighbour"))
    clean(cli, "demo", deep=False)
    data = ended(cli.run("seal", "demo")).data
    assert (data["environment"], data["generation"], data["sealed"], data["changed"]) == ("demo", 1, True, True)
    assert data["files"] > 3
    assert data["folders"] > 3
    assert is_sealed(cli)
    assert list(cli.site().glob("six/__pycache__/__init__.*.pyc"))
    assert ended(cli.run("show", "demo")).data["sealed"] is True
    for tool, wheel in (("pip", SEVEN), ("uv", SEVEN), ("pip", NEW), ("uv", NEW)):
        refused = install(cli, tmp_path, tool, wheel)
        assert refused.returncode != 0
        assert "ermission denied" in refused.stdout + refused.stderr
    clean(cli, "demo", deep=False)
    clean(cli, "demo", "neighbour")
    again = ended(cli.run("seal", "demo")).data
    assert (again["changed"], again["files"], again["folders"]) == (False, 0, 0)
    data = ended(cli.run("unseal", "demo")).data
    assert (data["sealed"], data["changed"]) == (False, True)
    assert ended(cli.run("unseal", "demo")).data["changed"] is False
    assert ended(cli.run("show", "demo")).data["sealed"] is False
    clean(cli, "demo", deep=False)
    for tool, wheel in (("pip", SEVEN), ("uv", NEW)):
        done = install(cli, tmp_path, tool, wheel)
        assert done.returncode == 0, done.stderr
    assert cli.installed() == {"six": "2.0.0", "new": "1.0.0"}
    clean(cli, "neighbour")


@pytest.mark.slow
def test_a_sealed_environment_of_conda_tells_pip_who_keeps_it(tmp_path: Path) -> None:
    need_plain(tmp_path)
    channel = Channel(packages=[packages.packed_python(), packages.pip()])
    with serve({"forge": channel, "pypi": Index(artefacts=[SIX, NEW])}) as server:
        cli = Cli(root=tmp_path, plain=True)
        conda = {"channels": [server.url("forge")]}
        profile(cli, server, backend="conda", conda=conda, sealed=True)
        ended(cli.run("create", "demo"))
        command = [str(cli.link() / "bin/python"), "-m", "pip", "install", "--index-url", server.url("pypi"), "new"]
        options: dict[str, Any] = {"env": {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}, "text": True}
        done = subprocess.run(command, check=False, capture_output=True, **options)
        assert done.returncode == 1
        assert "externally-managed-environment" in done.stderr
        assert "envforge unseal demo" in done.stderr
        clean(cli, "demo")
        ended(cli.run("unseal", "demo"))
        clean(cli, "demo")
        subprocess.run(command, check=True, capture_output=True, **options)
        assert cli.installed() == {"six": "1.0.0", "new": "1.0.0"}


@pytest.mark.slow
def test_what_envforge_does_with_it_goes_on(house: tuple[Cli, Server]) -> None:
    """Also with a cache whose files were closed along with it."""
    cli, server = house
    ended(cli.run("create", "demo"))
    ended(cli.run("seal", "demo"))
    ended(cli.run("rebuild", "demo"))
    assert (cli.link().readlink().name, is_sealed(cli)) == ("2", False), "a seal is of its generation"
    ended(cli.run("seal", "demo"))
    profile(cli, server, steps=[{"name": "all", "install": ["six>=2", "new"]}])
    ended(cli.run("update", "demo"))
    assert (cli.installed(), is_sealed(cli)) == ({"six": "2.0.0", "new": "1.0.0"}, False)
    ended(cli.run("rollback", "demo", "demo/1"))
    assert is_sealed(cli)
    profile(cli, server)
    ended(cli.run("create", "demo", "--name", "other"))
    clean(cli, "demo", "other")
    ended(cli.run("seal", "other"))
    ended(cli.run("remove", "demo"))
    assert not (cli.home / "generations/demo").exists()
    assert is_sealed(cli, "other"), "removing one does not open the files of another"


@pytest.mark.slow
def test_a_profile_seals_what_it_builds_and_an_edited_one_does_not(house: tuple[Cli, Server]) -> None:
    cli, server = house
    (cli.work / "profiles/demo.yaml").write_text("schema: 1\nname: demo\nextends: ./base.yaml\n")
    profile(cli, server, "base", sealed=True, smoke=[{"import": ["six"]}])
    ended(cli.run("create", "demo"))
    assert is_sealed(cli)
    clean(cli, "demo", deep=False)
    ended(cli.run("rebuild", "demo"))
    assert (cli.link().readlink().name, is_sealed(cli)) == ("2", True)
    (cli.work / "profiles/demo.yaml").write_text("schema: 1\nname: demo\nextends: ./base.yaml\nsealed: false\n")
    ended(cli.run("update", "demo"))
    assert (cli.link().readlink().name, is_sealed(cli)) == ("3", False)


@pytest.mark.slow
def test_what_is_not_proved_is_not_sealed(house: tuple[Cli, Server]) -> None:
    cli, server = house
    profile(cli, server, sealed=True, smoke=[{"import": ["absent"]}])
    ended(cli.run("create", "demo"), 3)
    assert not cli.link().exists()
    assert writable(cli.home / "generations/demo/1")
    profile(cli, server, sealed=True)
    ended(cli.run("create", "demo"))
    assert is_sealed(cli)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_build_that_ends_while_it_is_sealed(house: tuple[Cli, Server], number: signal.Signals) -> None:
    cli, server = house
    many = Wheel(name="many", version="1.0.0", files={f"many/m{place}.py": "x = 1\n" for place in range(800)})
    server.put("pypi", many)
    steps = [{"name": "all", "install": ["six<2", "many"]}]
    profile(cli, server, sealed=True, steps=steps, smoke=[{"import": ["six"]}])
    child = cli.start("create", "demo")
    journal = cli.home / "records/demo/1/journal.jsonl"
    last = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < last:
        if journal.exists() and '"sealed"' in journal.read_text():
            break
        time.sleep(0.001)
    child.send_signal(number)
    finish(child)
    # Which of two it is depends on the moment: it may have been in use already.
    more = ["--replace"] if cli.link().exists() else []
    answer = ended(cli.run("create", "demo", *more))
    assert more or answer.data["continued"] == "all", str(answer)
    assert is_sealed(cli)
    clean(cli, "demo")


# -- opened for a change in place --------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> tuple[Shop, Path]:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    return shop, shop.home.prefix("small", 1)


def test_opened_for_a_change_and_closed_however_it_ends(small: tuple[Shop, Path]) -> None:
    shop, prefix = small
    seal(shop, "small")
    with sealing.opened(shop.home, "small", 1):
        assert "pyvenv.cfg" in writable(prefix)
        assert sealed(shop.home, "small", 1), "what is killed here is closed by the next"
        small_home.put(small_home.site(shop), "seven", "1.0")
    assert writable(prefix) == []
    assert list(small_home.site(shop).glob("__pycache__/seven.*.pyc"))
    message = "in the middle"
    with pytest.raises(KeyboardInterrupt), sealing.opened(shop.home, "small", 1):
        raise KeyboardInterrupt(message)
    assert writable(prefix) == []
    assert sealed(shop.home, "small", 1)


def test_one_that_is_open_is_left_alone(small: tuple[Shop, Path]) -> None:
    shop, prefix = small
    before = writable(prefix)
    with sealing.opened(shop.home, "small", 1):
        assert writable(prefix) == before
    assert writable(prefix) == before
    kinds = [event.kind for event in Journal(shop.home.journal("small", 1)).events()]
    assert not {"sealed", "unsealed"} & {*kinds}
    assert not unseal(shop, "small").data.changed


_KILLED = """
import os, signal, sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from envforge.forge import sealing
from envforge.store.layout import Home
root = Path(sys.argv[2])
with sealing.opened(Home(root, root / "cache"), "small", 1):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("then", ["seal", "opened"])
def test_what_was_killed_while_open_is_closed_by_the_next(small: tuple[Shop, Path], then: str) -> None:
    shop, prefix = small
    seal(shop, "small")
    source = str(Path(envforge.__file__).parent.parent)
    child = subprocess.run([sys.executable, "-c", _KILLED, source, str(shop.home.root)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert writable(prefix)
    if then == "seal":
        assert seal(shop, "small").data.changed
    else:
        with sealing.opened(shop.home, "small", 1):
            pass
    assert writable(prefix) == []
    assert not seal(shop, "small").data.changed


# -- what is said ------------------------------------------------------------------------------------------------------


def test_root_is_told_that_it_is_not_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for is_root in (True, False):
        told: list[Progress] = []
        shop = small_home.shop(tmp_path / str(is_root), told)
        small_home.environment(shop)
        monkeypatch.setattr("envforge.system.environ.is_root", lambda answer=is_root: answer)
        seal(shop, "small")
        assert any(isinstance(each, Note) and "for root" in each.text for each in told) is is_root


def test_a_python_that_is_gone_costs_the_bytecode_and_not_the_seal(tmp_path: Path) -> None:
    told: list[Progress] = []
    shop = small_home.shop(tmp_path, told)
    small_home.environment(shop)
    prefix = shop.home.prefix("small", 1)
    (prefix / "bin/python").unlink()
    assert seal(shop, "small").data.changed
    assert writable(prefix) == []
    assert any(isinstance(each, Note) and "bytecode could not be compiled" in each.text for each in told)


def test_nothing_of_the_environment_is_run_for_its_bytecode(small: tuple[Shop, Path], tmp_path: Path) -> None:
    shop, _ = small
    mark = tmp_path / "ran"
    (small_home.site(shop) / "evil.pth").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n")
    seal(shop, "small")
    assert not mark.exists()


def test_names_and_locks(small: tuple[Shop, Path]) -> None:
    shop, _ = small
    for verb in (seal, unseal):
        with pytest.raises(EnvforgeError) as caught:
            verb(shop, "nothing")
        assert caught.value.code == "no-such-environment"
        with locking.hold(shop.home, "small", "update small"), pytest.raises(EnvforgeError) as caught:
            verb(shop, "small")
        assert caught.value.code == "locked"
    shop.home.link("small").unlink()
    with pytest.raises(EnvforgeError) as caught:
        seal(shop, "small")
    assert caught.value.code == "no-generation"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_somebody_else_is_named_with_exit_4(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("create", "demo"))
    os.chown(cli.link().resolve() / "bin", 65534, 65534)
    answer = ended(cli.run("seal", "demo"), 4)
    assert answer.document["error"]["code"] == "seal-incomplete"
    assert "bin: " in answer.document["error"]["cause"]
    os.chown(cli.link().resolve() / "bin", os.getuid(), os.getgid())
    assert ended(cli.run("seal", "demo")).data["changed"] is True
    assert writable(cli.link().resolve()) == []


def test_a_prefix_that_is_gone_is_told(small: tuple[Shop, Path]) -> None:
    shop, prefix = small
    seal(shop, "small")
    prefix.rename(prefix.with_name("away"))
    with pytest.raises(LeftoverError, match="could not be opened") as caught:
        sealing.open_(shop.home, "small", 1)
    assert (caught.value.code, caught.value.exit) == ("seal-incomplete", 4)


def test_history_knows_no_verdict_of_a_seal(small: tuple[Shop, Path]) -> None:
    from envforge.forge.show import show

    shop, _ = small
    before = show(shop, "small").data
    seal(shop, "small")
    assert replace(show(shop, "small").data, sealed=False) == before
    unseal(shop, "small")
    assert show(shop, "small").data == before
