"""A rebuild holds what the lock says, byte for byte, whatever the world has become; and harms nothing on the way."""

from __future__ import annotations

import shutil
import signal
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from engines.house import House
from kit.check import contract
from kit.cli import Cli, finish
from kit.index import Index, Server, serve
from kit.wheels import Sdist, Wheel

from envforge.engines import uv
from envforge.forge.rebuild import rebuild
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.progress import Note
from envforge.model.result import Build, Result
from envforge.store import snapshots
from envforge.store.journal import Journal
from envforge.system import environ, http, process

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0", scripts={"idna": "idna:main"})
STEP = {"name": "six", "install": ["six"]}
NEXT = {"name": "idna", "install": ["idna"]}
NEWER = (SEVEN, Wheel(name="idna", version="2.0.0"))
MINE = """\
import os, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path('purelib'))
version = open({version!r}).read()
info = site / f'mine-{{version}}.dist-info'
info.mkdir()
(info / 'METADATA').write_text(f'Metadata-Version: 2.1\\nName: mine\\nVersion: {{version}}\\n')
(info / 'RECORD').write_text(f'{{info.name}}/METADATA,,\\n{{info.name}}/RECORD,,\\n')
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def files(prefix: Path) -> Mapping[str, bytes]:
    """What the environment's distributions are made of, without what is written anew each time."""
    site = next(prefix.glob("lib/python*/site-packages"))
    return {
        str(path.relative_to(site)): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and path.name != "RECORD" and not path.is_relative_to(site / "pip")
    }


def evict(made: House, *names: str) -> None:
    variables = environ.hermetic({"UV_CACHE_DIR": str(made.settings.cache / "uv")})
    assert process.run([uv.binary(), "cache", "clean", *names], env=variables).ok


def notes(made: House) -> str:
    return "\n".join(each.text for each in made.told if isinstance(each, Note))


def said(built: Result[Build]) -> list[str]:
    """The findings, without what this host's configuration may bring."""
    return [f"{each.severity} {each.id} {each.subject}" for each in built.findings if each.severity != "info"]


@pytest.mark.parametrize("engine", ["uv", pytest.param("pip", marks=pytest.mark.slow)])
def test_the_same_bytes_though_the_index_moved_on_and_nothing_is_asked(tmp_path: Path, engine: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server, engine=engine)
        assert made.create([STEP, NEXT]).exit == 0
        server.put("pypi", *NEWER)
        server.forget()
        built = rebuild(made.shop, "demo")
        assert (built.command, built.exit, said(built)) == ("rebuild", 0, [])
        assert (built.data.generation, built.data.switched, made.shop.home.current("demo")) == (2, True, 2)
        assert made.installed() == {"six": "1.0.0", "idna": "1.0.0"}
        first, second = (files(made.shop.home.prefix("demo", number)) for number in (1, 2))
        assert first == second
        assert not server.requests("page")
        assert not server.requests("metadata")
        assert not server.requests("file")
        started = Journal(made.shop.home.journal("demo", 2)).events()[0]
        assert started.data["source"] == str((made.folder / "demo.yaml").resolve())


def test_only_what_is_missing_is_fetched(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP, NEXT])
        evict(made, "six")
        server.forget()
        assert rebuild(made.shop, "demo").exit == 0
        assert {each.name for each in server.requests("file")} == {SIX.filename}
        assert {each.name for each in server.requests("page")} <= {"six"}


def test_another_file_of_the_same_name_is_refused(tmp_path: Path) -> None:
    other = Wheel(name="six", version="1.0.0", files={"six/other.py": "x = 1\n"})
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        evict(made, "six")
        server.put("pypi", other)
        with pytest.raises(EnvforgeError) as caught:
            rebuild(made.shop, "demo")
        assert caught.value.code == "hash-mismatch", (caught.value, caught.value.cause)
        assert made.shop.home.current("demo") == 1


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["uv", "pip"])
def test_offline_from_a_warm_cache(tmp_path: Path, engine: str) -> None:
    old = Sdist(wheel=Wheel(name="old", version="1.0.0"), metadata="dynamic")
    with serve({"pypi": Index(artefacts=[SIX, IDNA, old])}) as server:
        made = House(tmp_path, server, engine=engine)
        made.create([STEP, NEXT, {"name": "old", "install": ["old"]}])
        server.forget()
        built = rebuild(made.offline().shop, "demo")
        assert (built.exit, made.installed()) == (0, {"six": "1.0.0", "idna": "1.0.0", "old": "1.0.0"})
        assert not server.requests()


@pytest.mark.slow
def test_offline_every_missing_file_is_named(tmp_path: Path) -> None:
    """Also the one of a version that a later step replaced."""
    steps = [{"name": "old", "install": ["six<2"]}, NEXT, {"name": "new", "pin": ["six>=2"]}]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create(steps)
        evict(made, "six")
        offline = made.offline()
        with pytest.raises(EnvforgeError) as caught:
            rebuild(offline.shop, "demo")
        assert caught.value.code == "not-cached"
        assert (caught.value.cause or "").split() == [f"`{SIX.filename}`", f"`{SEVEN.filename}`"]
        assert made.shop.home.generations("demo") == (1,)
        shutil.rmtree(made.settings.cache / "index" / "metadata")
        with pytest.raises(EnvforgeError) as caught:
            rebuild(offline.shop, "demo")
        assert IDNA.filename in (caught.value.cause or "")
        assert rebuild(made.shop, "demo").exit == 0


def test_a_wheel_that_was_built_here_and_is_gone(tmp_path: Path) -> None:
    old = Sdist(wheel=Wheel(name="old", version="1.0.0"), metadata="dynamic")
    with serve({"pypi": Index(artefacts=[old])}) as server:
        made = House(tmp_path, server)
        made.create([{"name": "old", "install": ["old"]}])
        for place in (made.settings.cache / "built" / "wheels").glob("*/old-*"):
            shutil.rmtree(place.parent)
        with pytest.raises(EnvforgeError) as caught:
            rebuild(made.shop, "demo")
        assert (caught.value.code, "old-1.0.0" in (caught.value.cause or "")) == ("not-restorable", True)
        assert "--fresh" in (caught.value.hint or "")
        assert rebuild(made.shop, "demo", fresh=True).exit == 0


@pytest.mark.slow
def test_a_program_is_run_again_and_what_comes_after_it_is_still_from_the_lock(tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("1.0")
    run = {"name": "mine", "run": ["python", "-c", MINE.format(version=str(version))]}
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        assert made.create([STEP, run, NEXT]).exit == 0
        server.put("pypi", *NEWER)
        built = rebuild(made.shop, "demo")
        assert (built.exit, said(built)) == (0, [])
        assert made.installed() == {"six": "1.0.0", "mine": "1.0", "idna": "1.0.0"}
        assert "run again, since no lock holds what a program does: `mine`" in notes(made)
        version.write_text("2.0")
        built = rebuild(made.shop, "demo")
        assert said(built) == ["warning package-changed mine"]
        assert made.installed() == {"six": "1.0.0", "mine": "2.0", "idna": "1.0.0"}


@pytest.mark.slow
def test_fresh_says_what_is_newer(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP, NEXT])
        server.put("pypi", SEVEN)
        made.profile([STEP])
        built = rebuild(made.shop, "demo", fresh=True)
        assert (built.exit, made.installed()) == (0, {"six": "2.0.0"})
        assert "against demo/1: idna 1.0.0 is left out, six 1.0.0 -> 2.0.0" in notes(made)
        (made.folder / "demo.yaml").unlink()
        with pytest.raises(EnvforgeError) as caught:
            rebuild(made.shop, "demo", fresh=True)
        assert caught.value.code == "profile-gone"
        assert rebuild(made.shop, "demo").exit == 0, "the lock does not need the file"


def test_what_cannot_be_rebuilt(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.shop.home.ensure()
        with pytest.raises(UsageError, match="no environment"):
            rebuild(made.shop, "demo")
        made.create([STEP])
        place = snapshots.folder(made.shop.home, "demo", 1)
        text = (place / "1.json").read_text()
        (place / "1.json").write_text("{")
        with pytest.raises(EnvforgeError) as caught:
            rebuild(made.shop, "demo")
        assert (caught.value.code, made.shop.home.current("demo")) == ("corrupt-record", 1)
        (place / "1.json").write_text(text)
        made.shop.home.link("demo").unlink()
        with pytest.raises(EnvforgeError) as caught:
            rebuild(made.shop, "demo")
        assert caught.value.code == "no-generation"


def test_a_folder_that_was_deleted_by_hand(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        shutil.rmtree(made.shop.home.prefix("demo", 1))
        built = rebuild(made.shop, "demo")
        assert (built.exit, built.data.generation, made.installed()) == (0, 2, {"six": "1.0.0"})


def test_guards_and_smoke_checks_still_count(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        smoke = [{"python": f"import os; assert not os.path.exists({str(flag)!r})"}]
        assert made.create([STEP], smoke=smoke).exit == 0
        flag.touch()
        built = rebuild(made.shop, "demo")
        assert (built.exit, built.data.switched, made.shop.home.current("demo")) == (3, False, 1)
        flag.unlink()
        assert (rebuild(made.shop, "demo").exit, made.shop.home.current("demo")) == (0, 3)


# -- in a process of its own -------------------------------------------------------------------------------------------


def write(cli: Cli, server: Server, steps: list[Any]) -> None:
    cli.profile(server.url("pypi"), steps)


@pytest.mark.slow
def test_killed_in_the_middle_and_two_at_once(tmp_path: Path) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    code = f"import os, time; open({str(mark)!r}, 'w').close()\nwhile os.path.exists({str(hold)!r}): time.sleep(0.02)\n"
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        cli = Cli(root=tmp_path)
        write(cli, server, [STEP, {"name": "wait", "run": ["python", "-c", code]}, NEXT])
        assert cli.run("create", "demo").exit == 0
        before = files(cli.link().resolve())
        mark.unlink()
        hold.touch()
        child = cli.start("rebuild", "demo")
        last = time.monotonic() + 60
        while not mark.exists():
            assert child.poll() is None, finish(child)
            assert time.monotonic() < last
            time.sleep(0.02)
        for verb in ("rebuild", "rollback"):
            second = cli.run(verb, "demo")
            contract(second)
            assert (second.exit, second.document["error"]["code"]) == (1, "locked"), str(second)
            assert "envforge rebuild demo" in second.text
        child.send_signal(signal.SIGKILL)
        assert finish(child).exit == -signal.SIGKILL
        hold.unlink()
        assert cli.link().readlink().name == "1"
        assert files(cli.link().resolve()) == before
        answer = cli.run("rebuild", "demo")
        contract(answer)
        assert answer.exit == 0, str(answer)
        assert (answer.data["generation"], answer.data["continued"], answer.data["switched"]) == (2, "six", True)
        assert files(cli.link().resolve()) == before
        back = cli.run("rollback", "demo")
        contract(back)
        assert back.exit == 0, str(back)
        assert {key: back.data[key] for key in ("before", "after", "built", "changes")} == {
            "before": 2, "after": 1, "built": False, "changes": [],
        }  # fmt: skip
