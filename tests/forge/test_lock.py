"""A lock in a file builds what was locked, byte for byte, wherever it is carried, or says why it does not."""

from __future__ import annotations

import json
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.house import House, versions
from kit.check import contract, ended
from kit.cli import PYTHON, Cli
from kit.index import Index, Server, serve
from kit.wheels import Sdist, Wheel

from envforge.forge.from_lock import create_locked
from envforge.forge.lock import lock
from envforge.forge.show import show
from envforge.forge.update import update
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.progress import Note
from envforge.profiles import loader
from envforge.store import lockfile, snapshots
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0", requires=("six",))
OLD = Sdist(wheel=Wheel(name="old", version="1.0.0"))
STEPS = [{"name": "six", "install": ["six==1.0.0"]}, {"name": "idna", "install": ["idna", "six>=2"]}]
RUNS = {"name": "write", "run": ["python", "-c", "import sys; open(sys.prefix + '/made', 'w').write('x')"]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture
def server() -> Iterator[Server]:
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, IDNA, OLD])}) as running:
        yield running


def elsewhere(tmp_path: Path, server: Server) -> House:
    """Another home, with a cache of its own."""
    root = tmp_path / "elsewhere"
    root.mkdir()
    return House(root, server)


def told(made: House) -> str:
    return "\n".join(each.text for each in made.told if isinstance(each, Note))


def contents(made: House, name: str = "demo") -> dict[str, tuple[str, str | None]]:
    snapshot = snapshots.latest(made.shop.home, name, made.shop.home.current(name) or 0)
    assert snapshot is not None
    return {key: (item.version, item.contents) for key, item in snapshot.state.items()}


def test_an_environment_is_built_again_elsewhere_though_the_index_moved_on(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    assert made.create(STEPS, smoke=[{"import": ["six"]}]).exit == 0
    file = tmp_path / "carried.toml"
    answer = lock(made.shop, "demo", output=str(file))
    assert (answer.data.subject, answer.data.file, answer.data.distributions) == ("demo/1.2", str(file), 2)
    assert (answer.data.steps, answer.data.lost) == (("six", "idna"), ())
    server.put("pypi", Wheel(name="idna", version="3.0.0"), Wheel(name="six", version="3.0.0"))
    other = elsewhere(tmp_path, server)
    built = create_locked(other.shop, file, None)
    assert (built.exit, built.command, built.data.switched) == (0, "create", True)
    assert [check.ok for check in built.data.smoke] == [True]
    assert contents(other) == contents(made)
    first = snapshots.read(other.shop.home, "demo", 1, 1).state
    assert versions(first) == {"six": "1.0.0"}


def test_a_profile_is_locked_without_an_environment_and_then_built_so(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS)
    path = made.folder / "demo.yaml"
    file = tmp_path / "carried.toml"
    answer = lock(made.shop, str(path), output=str(file))
    assert (answer.exit, answer.data.subject, answer.data.distributions) == (0, "demo", 2)
    assert not made.shop.home.environments()
    assert not server.requests("file")
    server.put("pypi", Wheel(name="six", version="3.0.0"))
    assert create_locked(made.shop, file, loader.load(path)).exit == 0
    assert made.installed() == {"six": "2.0.0", "idna": "1.0.0"}
    made.told.clear()
    recorded = lock(made.shop, "demo", output="-").data.text
    assert recorded == answer.data.text


def test_hashes_that_no_index_states_are_made(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX], hashes=False)}) as server:
        made = House(tmp_path, server)
        made.profile([{"name": "six", "install": ["six"]}])
        text = lock(made.shop, str(made.folder / "demo.yaml"), output="-").data.text
        (step,) = lockfile.load(text, Path("x")).steps
        assert len(step.state["six"].sha256 or "") == 64


def test_a_plan_that_ends_open_is_not_locked(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS, guards=[{"hold": "six<2"}])
    file = tmp_path / "x.toml"
    answer = lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    assert (answer.exit, answer.data.file, answer.data.text) == (3, None, "")
    assert not file.exists()


def test_what_must_be_built_first_is_named_and_locked_once_it_is(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    steps = [{"name": "old", "install": ["old"]}]
    made.profile(steps)
    path = str(made.folder / "demo.yaml")
    with pytest.raises(EnvforgeError, match=r"old-1\.0\.0\.tar\.gz") as caught:
        lock(made.shop, path, output="-")
    assert caught.value.code == "lock-needs-build"
    made.create(steps)
    text = lock(made.shop, path, output="-").data.text
    assert lock(made.shop, "demo", output="-").data.text == text
    assert "old-1.0.0-py3-none-any.whl" in told(made)
    # Elsewhere nobody has that wheel, unless it is carried along.
    file = tmp_path / "demo.pylock.toml"
    file.write_text(text, encoding="utf-8")
    other = elsewhere(tmp_path, server)
    with pytest.raises(EnvforgeError) as caught:
        create_locked(other.shop, file, None)
    assert caught.value.code == "not-restorable"
    assert "beside the lock" in (caught.value.hint or "")
    wheel = next((made.settings.cache / "built" / "wheels").glob("*/old-*.whl"))
    (tmp_path / wheel.name).write_bytes(b"other bytes")
    with pytest.raises(EnvforgeError, match="nowhere"):
        create_locked(other.shop, file, None)
    shutil.copy(wheel, tmp_path / wheel.name)
    assert create_locked(other.shop, file, None).exit == 0
    assert contents(other) == contents(made)


def test_a_program_is_run_again_and_that_is_said(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile([*STEPS, RUNS])
    file = tmp_path / "x.toml"
    lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    assert "`write`" in told(made)
    assert create_locked(made.shop, file, None).exit == 0
    assert (made.shop.home.link("demo") / "made").exists()


def test_a_lock_that_no_longer_satisfies_its_profile_says_why(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS)
    file = tmp_path / "x.toml"
    lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    wider = made.profile([STEPS[0], {"name": "idna", "install": ["idna"]}], guards=[{"hold": "six<3"}], summary="new")
    narrower = made.profile([STEPS[0], {"name": "idna", "install": ["idna>1"]}], guards=[{"hold": "six<2"}])
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, narrower)
    assert caught.value.code == "lock-outdated"
    assert (caught.value.cause or "").splitlines() == [
        "after the step `idna` the lock holds `idna` 1.0.0, and the step asks for `idna>1`",
        "`six` 2.0.0 violates `six<2`",
    ]
    assert not made.shop.home.environments()
    older = made.profile(STEPS, python=">=3.99")
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, older)
    assert (caught.value.cause or "").endswith("and the profile asks for >=3.99")
    assert create_locked(made.shop, file, wider).exit == 0


def test_metadata_that_contradicts_the_profile_is_found_before_anything_is_built(tmp_path: Path) -> None:
    strict = Wheel(name="idna", version="1.0.0", requires=("six<2",))
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, strict])}) as server:
        made = House(tmp_path, server)
        steps = [{"name": "idna", "install": ["idna"]}, {"name": "six", "pin": ["six>=2"]}]
        made.profile(steps, ignore=[{"id": "requirement-unmet"}, {"id": "pin-contradiction"}])
        file = tmp_path / "x.toml"
        assert lock(made.shop, str(made.folder / "demo.yaml"), output=str(file)).data.file
        built = create_locked(made.shop, file, made.profile(steps))
        assert (built.exit, built.data.generation) == (3, 0)
        assert "requirement-unmet" in {each.id for each in built.findings}


def test_what_was_built_from_a_lock_alone_has_no_profile_to_update_from(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS)
    file = tmp_path / "x.toml"
    lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    create_locked(made.shop, file, None, name="other")
    assert made.shop.home.current("other") == 1
    view = show(made.shop, "other").data
    assert (view.outdated, view.source) == (None, str(file))
    assert "holds its profile" in (view.outdated_why or "")
    with pytest.raises(EnvforgeError) as caught:
        update(made.shop, "other")
    assert caught.value.code == "profile-gone"


def test_a_profile_in_a_lock_that_is_wrong_is_told_with_its_place(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS)
    file = tmp_path / "x.toml"
    lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    file.write_text(file.read_text(encoding="utf-8").replace("\nsteps:\n", "\nstep:\n"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        create_locked(made.shop, file, None)
    assert caught.value.code == "invalid-profile"
    assert f"{file} (profile):" in (caught.value.cause or "")


@pytest.mark.parametrize("name", ["nothing", "./nothing.yaml"])
def test_neither_an_environment_nor_a_profile(tmp_path: Path, server: Server, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        lock(House(tmp_path, server).shop, name)
    assert caught.value.code == "unknown-profile"


def test_the_command(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path / "cli")
    cli.profile(server.url("pypi"), STEPS)
    answer = ended(cli.run("lock", "demo"))
    file = cli.work / "demo.pylock.toml"
    assert answer.data["file"] == "demo.pylock.toml"
    assert file.read_text(encoding="utf-8") == answer.data["text"]
    ended(cli.run("create", "--lock", "demo.pylock.toml"))
    assert cli.installed() == {"six": "2.0.0", "idna": "1.0.0"}
    contract(cli.run("create", "--lock", "demo.pylock.toml"))
    assert ended(cli.run("create", "demo", "--lock", "demo.pylock.toml", "--replace")).data["generation"] == 2
    answer = ended(cli.run("create"), 2)
    assert answer.document["error"]["code"] == "usage"
    answer = ended(cli.run("create", "--lock", "none.toml"), 2)
    assert answer.document["error"]["code"] == "unreadable-file"
    answer = ended(cli.run("lock", "demo", "-o", "none/x.toml"), 1)
    assert answer.document["error"]["code"] == "not-writable"
    ended(cli.run("lock", "demo", "-o", "-"))
    assert json.loads(json.dumps(answer.document))["command"] == "lock"


def test_a_lock_for_another_python_is_refused_by_that(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.profile(STEPS, python=">=3.8")
    file = tmp_path / "x.toml"
    lock(made.shop, str(made.folder / "demo.yaml"), output=str(file))
    text = file.read_text(encoding="utf-8")
    version = lockfile.load(text, file).python
    assert version.startswith(PYTHON)
    file.write_text(text.replace(f'python = "{version}"', 'python = "3.99.1"'), encoding="utf-8")
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, None)
    assert caught.value.code == "python-not-found"
