"""A bundle builds the same environment in another home, without a network, and says what it lacks where it cannot."""

from __future__ import annotations

import shutil
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from engines.house import House
from forge.test_lock import contents, told
from kit.check import ended
from kit.cli import Cli, finish
from kit.index import Fault, Index, serve
from kit.mounts import mounted
from kit.wheels import Sdist, Wheel, noise
from test_faults import wait_until

from envforge.forge.bundle import bundle, part_size
from envforge.forge.from_bundle import create_bundled
from envforge.forge.rebuild import rebuild
from envforge.forge.show import show
from envforge.forge.update import update
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.progress import Working
from envforge.store.bundles.parts import Sink
from envforge.store.bundles.reading import opened
from envforge.store.bundles.writing import write
from envforge.system import environ, http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0", requires=("six",), scripts={"idna": "idna:__doc__"})
OLD = Sdist(wheel=Wheel(name="old", version="1.0.0"))
STEPS = [{"name": "six", "install": ["six==1.0.0"]}, {"name": "idna", "install": ["idna", "six>=2", "old"]}]
SMOKE = [{"import": ["six", "idna", "old"]}]


def plain(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("HOME", str(home))
    patch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain(monkeypatch, tmp_path)


@dataclass(frozen=True, kw_only=True)
class Made:
    """``file``: the bundle of the environment ``demo`` of ``house``, whose index is gone since."""

    house: House
    file: Path
    sha256: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Made once, since envforge itself is packed into it."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA, OLD])}) as server:
        plain(patch, root)
        house = House(root, server)
        assert house.create(STEPS, smoke=SMOKE).exit == 0
        answer = bundle(house.shop, "demo", output=str(root / "demo.tar")).data
        assert answer.written == (str(root / "demo.tar"),)
        assert (answer.snapshot, answer.wheels, answer.built, answer.lost) == ("demo/1.2", 4, 1, ())
        assert answer.bytes == (root / "demo.tar").stat().st_size
    return Made(house=house, file=root / "demo.tar", sha256=answer.sha256)


def elsewhere(made: Made, root: Path, **settings: Any) -> House:
    """Another home, with a cache of its own."""
    return House(root, made.house.server, **settings)


def test_the_same_is_built_elsewhere_without_the_index(tmp_path: Path, made: Made) -> None:
    other = elsewhere(made, tmp_path)
    built = create_bundled(other.shop, made.file)
    assert (built.exit, built.command, built.data.switched) == (0, "create", True)
    assert [check.ok for check in built.data.smoke] == [True]
    assert contents(other) == contents(made.house)
    # What was brought is in the cache of the engine: the wheels themselves lie in the bundle alone.
    assert not (other.settings.cache / "index" / "files").exists()
    assert rebuild(other.offline().shop, "demo").exit == 0
    assert contents(other) == contents(made.house)


@pytest.mark.slow
def test_it_knows_that_it_has_no_profile_of_its_own(tmp_path: Path, made: Made) -> None:
    other = elsewhere(made, tmp_path)
    file = tmp_path / "moved.tar"
    shutil.copy(made.file, file)
    create_bundled(other.shop, file, name="other")
    file.unlink()
    view = show(other.shop, "other").data
    assert (view.outdated, view.source) == (None, str(file / "pylock.toml"))
    assert "holds its profile" in (view.outdated_why or "")
    with pytest.raises(EnvforgeError) as caught:
        update(other.shop, "other")
    assert caught.value.code == "profile-gone"


@pytest.mark.slow
def test_pip_builds_from_it_too(tmp_path: Path, made: Made) -> None:
    other = elsewhere(made, tmp_path, engine="pip")
    assert create_bundled(other.shop, made.file).exit == 0
    assert contents(other) == contents(made.house)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    steps = [STEPS[0], {"name": "idna", "install": ["idna", "six>=2"]}]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA])}) as server:
        house = House(tmp_path, server)
        house.create(steps)
        server.withdraw("pypi", "idna-*")
        file = tmp_path / "demo.tar"
        with pytest.raises(EnvforgeError) as caught:
            bundle(house.shop, "demo", output=str(file))
        assert (caught.value.code, caught.value.message) == ("bundle-incomplete", f"one file of `{file}` cannot be had")
        assert "`idna-1.0.0-py3-none-any.whl`" in (caught.value.cause or "")
        assert not file.exists()
        server.put("pypi", IDNA)
        before = len(server.requests("file", "six-*"))
        first = bundle(house.shop, "demo", output=str(file)).data
        assert first.wheels == 3
        assert len(server.requests("file", "six-*")) == before
        assert [path.name for path in tmp_path.glob("demo.tar*")] == ["demo.tar"]
        moving = {each.what.split()[0] for each in house.told if isinstance(each, Working) and each.what and each.done}
        assert moving >= {"fetching", "writing"}
        # Another home, another generation: nothing of it is in the bundle.
        (tmp_path / "two").mkdir()
        house = House(tmp_path / "two", server)
        house.create(steps)
        house.create(steps, again=True)
        second = bundle(house.shop, "demo", output=str(tmp_path / "two/x.tar")).data
    assert (second.snapshot, second.sha256) == ("demo/2.2", first.sha256)
    assert file.read_bytes() == (tmp_path / "two/x.tar").read_bytes()


@pytest.mark.slow
def test_what_cannot_be_carried_and_what_is_not_here_is_named(tmp_path: Path) -> None:
    copies = (
        "import pathlib, sys; site = next(pathlib.Path(sys.prefix).glob('lib/*/site-packages')); "
        "info = site / 'odd-1.dist-info'; info.mkdir(); "
        "(info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: odd\\nVersion: 1\\n'); "
        "(info / 'RECORD').write_text('odd-1.dist-info/METADATA,,\\nodd-1.dist-info/RECORD,,\\n')"
    )
    steps = [STEPS[0], {"name": "idna", "install": ["idna", "six>=2"]}, {"name": "w", "run": ["python", "-c", copies]}]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA])}) as server:
        House(tmp_path, server).create(steps)
        house = House(tmp_path, server).offline()
    with pytest.raises(EnvforgeError) as caught:
        bundle(house.shop, "demo", output=str(tmp_path / "demo.tar"))
    assert caught.value.code == "bundle-incomplete"
    names = [line.split("`")[1] for line in (caught.value.cause or "").splitlines()]
    assert names == ["idna-1.0.0-py3-none-any.whl", "six-1.0.0-py3-none-any.whl", "six-2.0.0-py3-none-any.whl"]
    assert "no lock knows the file of what a program put there: `odd` 1" in told(house)


# -- before anything is built ------------------------------------------------------------------------------------------


def again(made: Made, path: Path, **changes: object) -> Path:
    """The bundle with another manifest."""
    with opened(made.file) as bundle_, Sink(path.parent, None) as sink:
        manifest = bundle_.manifest
        write(
            sink,
            replace(manifest, **changes),  # type: ignore[arg-type]
            [bundle_.pieces[member.name] for member in manifest.members],
            lambda _: None,
        )
    return sink.paths[0].rename(path)


def test_another_host_is_refused_before_the_bundle_is_read(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = elsewhere(made, tmp_path)
    needs = replace(manifest_of(made).needs, architecture="x86_64", glibc="2.28")
    file = again(made, tmp_path / "x.tar", needs=needs)
    data = bytearray(file.read_bytes())
    data[-2000] ^= 255
    file.write_bytes(data)
    for glibc, architecture, said in (
        ("2.27", "x86_64", "needs glibc 2.28 or newer, and this host has 2.27"),
        (None, "x86_64", "this host has another C library"),
        ("2.36", "aarch64", "is for x86_64, and this host is aarch64"),
    ):
        monkeypatch.setattr(environ, "glibc", lambda glibc=glibc: glibc)
        monkeypatch.setattr(environ, "architecture", lambda architecture=architecture: architecture)
        with pytest.raises(EnvforgeError, match=said) as caught:
            create_bundled(other.shop, file)
        assert caught.value.code == "bundle-unfit"
    monkeypatch.undo()
    assert not other.shop.home.root.exists()


def manifest_of(made: Made):  # type: ignore[no-untyped-def] # noqa: ANN201
    with opened(made.file) as bundle_:
        return bundle_.manifest


def test_a_python_that_is_not_there_is_named(tmp_path: Path, made: Made) -> None:
    file = again(made, tmp_path / "x.tar", python="3.99.1")
    with pytest.raises(EnvforgeError, match=r"no Python `3\.99`"):
        create_bundled(elsewhere(made, tmp_path).shop, file)


def test_nothing_is_built_from_a_bundle_with_a_changed_byte(tmp_path: Path, made: Made) -> None:
    file = tmp_path / "x.tar"
    data = bytearray(made.file.read_bytes())
    data[-2000] ^= 1
    file.write_bytes(data)
    other = elsewhere(made, tmp_path)
    with pytest.raises(EnvforgeError, match="nothing of it was used") as caught:
        create_bundled(other.shop, file)
    assert (caught.value.code, (caught.value.cause or "")[:7]) == ("bundle-damaged", "`files/")
    assert not other.shop.home.environments()


def test_a_lock_that_names_what_is_not_in_it(tmp_path: Path, made: Made) -> None:
    members = manifest_of(made).members
    with opened(made.file) as bundle_, Sink(tmp_path, None) as sink:
        few = replace(bundle_.manifest, members=members[:-1])
        write(sink, few, [bundle_.pieces[member.name] for member in few.members], lambda _: None)
    with pytest.raises(UsageError) as caught:
        create_bundled(elsewhere(made, tmp_path).shop, sink.paths[0])
    assert caught.value.code == "not-a-bundle"
    assert members[-1].name.rpartition("/")[2] in (caught.value.cause or "")


@pytest.mark.parametrize(("text", "size"), [("2G", 2 << 30), ("500M", 500 << 20), ("1m", 1 << 20), ("2048K", 2 << 20)])
def test_sizes(text: str, size: int) -> None:
    assert part_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "12", "1023K", "-1M", "1.5G", "2GB", "M", "٣M"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError):
        part_size(text)


@pytest.mark.slow
def test_a_full_disk_is_told_and_what_was_fetched_waits(tmp_path: Path) -> None:
    huge = Wheel(name="huge", version="1.0.0", files={"huge/data.txt": noise(3_000_000)})
    with serve({"pypi": Index(artefacts=[SIX, huge])}) as server:
        house = House(tmp_path, server)
        house.create([{"name": "huge", "install": ["huge", "six"]}])
        size = len(huge.bytes()) // 1024
        with mounted(tmp_path / "tiny", f"size={size}k") as tiny:
            with pytest.raises(EnvforgeError, match="the disk is full: cannot write") as caught:
                bundle(house.shop, "demo", output=str(tiny / "demo.tar"))
            assert caught.value.code == "disk-full"
        with mounted(tmp_path / "small", f"size={size * 3}k") as small:
            with pytest.raises(EnvforgeError, match=r"takes 0\.1 GB, and 0\.0 GB are free") as caught:
                bundle(house.shop, "demo", output=str(small / "demo.tar"))
            assert caught.value.code == "disk-full"
            assert len(list((small / "demo.tar.part").iterdir())) == 2


# -- the commands ------------------------------------------------------------------------------------------------------


def test_the_commands_and_parts(tmp_path: Path, made: Made) -> None:
    cli = Cli(root=tmp_path / "cli", variables={"ENVFORGE_HOME": str(made.house.shop.home.root)})
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA])}) as server:
        routed = {"ENVFORGE_MIRRORS": f"{{pypi: ['{server.url('pypi')}']}}"}
        making = Cli(root=tmp_path / "cli", variables={**cli.variables, **routed})
        answer = ended(making.run("bundle", "demo", "--split", "20M", "-o", "d.tar"))
    parts = answer.data["written"]
    assert len(parts) > 1
    assert parts == [f"d.tar.{number:03}" for number in range(1, len(parts) + 1)]
    assert answer.data["sha256"] == made.sha256
    joined = b"".join((cli.work / part).read_bytes() for part in parts)
    assert joined == made.file.read_bytes()
    other = Cli(root=tmp_path / "other")
    ended(other.run("create", "--bundle", str(cli.work / "d.tar.001"), "--name", "there"))
    assert other.installed("there") == {"six": "2.0.0", "idna": "1.0.0", "old": "1.0.0"}
    answer = ended(other.run("create", "--bundle", str(cli.work / "d.tar")), 2)
    assert "d.tar.001" in answer.document["error"]["hint"]
    (cli.work / parts[-1]).unlink()
    answer = ended(other.run("create", "--bundle", str(cli.work / "d.tar.001")), 1)
    assert answer.document["error"]["code"] == "bundle-part-missing"
    assert f"`{cli.work / parts[-1]}` is missing" in answer.document["error"]["message"]


@pytest.mark.slow
def test_a_run_that_was_interrupted_leaves_what_it_fetched_and_goes_on(tmp_path: Path) -> None:
    big = Wheel(name="big", version="1.0.0", files={"big/data.txt": noise(600_000)})
    with serve({"pypi": Index(artefacts=[SIX, big])}) as server:
        cli = Cli(root=tmp_path)
        cli.profile(server.url("pypi"), [{"name": "all", "install": ["six==1.0.0", "big"]}])
        ended(cli.run("create", "demo"))
        slow = Fault(file="big-*", rate=20_000)
        with serve({"pypi": Index(artefacts=[SIX, big], faults=[slow])}) as crawling:
            routed = {"ENVFORGE_MIRRORS": f"{{pypi: ['{crawling.url('pypi')}']}}"}
            child = Cli(root=tmp_path, variables=routed).start("bundle", "demo")
            wait_until(lambda: _fetched(cli.work) == 1 and any(cli.work.glob("demo.tar.part/*.part")), child)
            child.send_signal(signal.SIGTERM)
            answer = ended(finish(child), 130)
            assert "what was fetched is kept" in answer.document["error"]["hint"]
        assert _fetched(cli.work) == 1
        before = len(server.requests("file", "six-*"))
        ended(cli.run("bundle", "demo"))
        assert len(server.requests("file", "six-*")) == before
    assert [path.name for path in cli.work.glob("demo.tar*")] == ["demo.tar"]


def _fetched(folder: Path) -> int:
    return sum(len(path.name) == 64 for path in folder.glob("demo.tar.part/*"))


def test_words_that_go_wrong(tmp_path: Path, made: Made) -> None:
    cli = Cli(root=tmp_path / "cli", variables={"ENVFORGE_HOME": str(made.house.shop.home.root)})
    for words in (
        ("create", "demo", "--bundle", str(made.file)),
        ("create", "--bundle", str(made.file), "--lock", "x.toml"),
        ("bundle", "demo", "-o", "-"),
        ("bundle", "demo", "--split", "5"),
    ):
        assert ended(cli.run(*words), 2).document["error"]["code"] == "usage", words
    assert ended(cli.run("create", "--bundle", str(made.file)), 2).document["error"]["code"] == "environment-exists"
    assert ended(cli.run("bundle", "none"), 2).document["error"]["code"] == "no-such-environment"
    assert ended(cli.run("bundle", "demo", "-o", "none/x.tar"), 1).document["error"]["code"] == "not-writable"


def test_a_shell_builds_it_with_the_envforge_that_is_in_it(tmp_path: Path, made: Made) -> None:
    shell = shutil.which("dash") or "/bin/sh"
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ENVFORGE_PYTHON": sys.executable, "COLUMNS": "400"}

    def run(*command: str, status: int = 0) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    said = run(shell, str(made.file), "--home", "there", "--name", "air")
    program = next((tmp_path / "there/program").glob("envforge-*/bin/envforge"))
    assert f"ready: {program} --home there run air python" in said
    # It is a whole envforge, which stays.
    assert "air" in run(str(program), "--home", "there", "list")
    assert run(str(program), "--home", "there", "run", "air", "python", "-c", "import six; print(six)")
    assert "quickstart" in run(str(program), "profiles")
    run(str(program), "--home", "there", "audit", "air")
    # It can carry itself on; what it was built from lies in the bundle alone, or at an index.
    assert "bundle-incomplete" in run(str(program), "--home", "there", "bundle", "air", "--offline", "--json", status=1)
