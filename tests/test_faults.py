"""Faults at the worst moment: whatever happens to a build, what was in use is as it was, and a rerun ends well."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kit.check import contract
from kit.cli import Answer, Cli, finish
from kit.index import Fault, Index, Server, serve
from kit.mounts import mounted
from kit.wheels import Wheel, noise

_PATIENCE = 60.0


SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
BIG = Wheel(name="big", version="1.0.0", files={"big/data.txt": noise(200_000)})
LAST = Wheel(name="last", version="1.0.0")
OLD_STEPS = [{"name": "six", "install": ["six<2"]}]


def write_profile(cli: Cli, server: Server, steps: list[Any], **more: Any) -> None:
    cli.profile(server.url("pypi"), steps, **more)


def digest(folder: Path) -> Mapping[str, str]:
    """Every file of a folder with the hash of its bytes, byte code left out."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def wait_until(true: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    """Wait for what a running command will do; fail with what it said if it ends or takes too long before."""
    last = time.monotonic() + _PATIENCE
    while not true():
        ended = child.poll() is not None
        if (ended and not true()) or time.monotonic() > last:
            child.kill()
            pytest.fail(f"waited in vain\n{finish(child)}")
        time.sleep(0.002)


def done(answer: Answer, exit_status: int = 0) -> Answer:
    contract(answer)
    assert answer.exit == exit_status, str(answer)
    return answer


def end(child: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to the command alone (not to its children), and see that it ends by it."""
    child.send_signal(number)
    answer = finish(child)
    assert "Traceback" not in answer.stderr, answer.stderr
    if number is signal.SIGKILL:
        assert answer.exit == -signal.SIGKILL, str(answer)
    else:
        contract(answer)
        assert answer.exit == 130, str(answer)


@contextmanager
def built(tmp_path: Path, *faults: Fault) -> Iterator[tuple[Cli, Server]]:
    """An environment `demo` in use with six 1.0.0, on an index that also has the rest; it must come out unharmed."""
    index = Index(artefacts=[SIX, SEVEN, BIG, LAST], faults=faults)
    with serve({"pypi": index}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, OLD_STEPS)
        done(cli.run("create", "demo"))
        yield cli, server


def whole(cli: Cli, before: Mapping[str, str]) -> None:
    """The environment in use is the first generation, byte for byte."""
    assert cli.link().readlink().name == "1"
    assert digest(cli.link().resolve()) == before
    listed = done(cli.run("list"))
    assert "demo" in listed.text


def again(cli: Cli, server: Server) -> None:
    """The rerun succeeds, and what it makes is complete."""
    done(cli.run("create", "demo", "--replace"))
    assert cli.installed() == {"six": "2.0.0", "big": "1.0.0", "last": "1.0.0"}
    assert (cli.site() / "big/data.txt").read_text() == BIG.files["big/data.txt"]
    assert cli.link().readlink().name != "1"
    server.forget()
    done(cli.run("plan", "demo"))


RARELY = [
    pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    signal.SIGKILL,
]
"""The one that nothing can prepare for is sent every time."""
NEW_STEPS = [
    {"name": "six", "install": ["six>=2"]},
    {"name": "big", "install": ["big"]},
    {"name": "last", "install": ["last"]},
]


@pytest.mark.slow
@pytest.mark.parametrize("number", RARELY, ids=lambda number: number.name)
def test_a_signal_during_a_download(tmp_path: Path, number: signal.Signals) -> None:
    with built(tmp_path, Fault(file="big-*.whl", rate=20_000, times=1)) as (cli, server):
        before = digest(cli.link().resolve())
        write_profile(cli, server, NEW_STEPS)
        child = cli.start("create", "demo", "--replace")
        server.wait_for("file", "big-*.whl")
        end(child, number)
        whole(cli, before)
        again(cli, server)


def holding(mark: Path, hold: Path) -> str:
    """Python that says where it is by a file, and then sleeps as long as another file exists."""
    return f"import os, time; open({str(mark)!r}, 'w').close()\nwhile os.path.exists({str(hold)!r}): time.sleep(0.02)\n"


@pytest.mark.parametrize("number", RARELY, ids=lambda number: number.name)
@pytest.mark.parametrize("where", ["step", pytest.param("smoke", marks=pytest.mark.slow)])
def test_a_signal_while_a_child_runs(tmp_path: Path, number: signal.Signals, where: str) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    hold.touch()
    code = holding(mark, hold)
    with built(tmp_path) as (cli, server):
        before = digest(cli.link().resolve())
        if where == "smoke":
            write_profile(cli, server, NEW_STEPS, smoke=[{"python": code}])
        else:
            steps = [*NEW_STEPS[:1], {"name": "wait", "run": ["python", "-c", code]}, *NEW_STEPS[1:]]
            write_profile(cli, server, steps)
        child = cli.start("create", "demo", "--replace")
        wait_until(mark.exists, child)
        end(child, number)
        hold.unlink()
        whole(cli, before)
        again(cli, server)


def journal(cli: Cli, generation: int) -> str:
    found = (cli.home / "records/demo" / str(generation)).glob("journal*")
    return "".join(path.read_text(errors="replace") for path in found)


@pytest.mark.parametrize("number", RARELY[1:], ids=lambda number: number.name)
@pytest.mark.parametrize(
    "event",
    [
        pytest.param("started", marks=pytest.mark.slow), pytest.param("step-started", marks=pytest.mark.slow),
        "step-finished", pytest.param("smoke", marks=pytest.mark.slow), "finished",
    ],
)  # fmt: skip
def test_a_signal_right_after_an_event_of_the_journal(tmp_path: Path, event: str, number: signal.Signals) -> None:
    with built(tmp_path) as (cli, server):
        before = digest(cli.link().resolve())
        write_profile(cli, server, NEW_STEPS, smoke=[{"import": ["six"]}])
        child = cli.start("create", "demo", "--replace")
        wait_until(lambda: f'"{event}"' in journal(cli, 2) or child.poll() is not None, child)
        child.send_signal(number)
        answer = finish(child)
        assert "Traceback" not in answer.stderr, answer.stderr
        # Which of two it is depends on the moment; something between them it never is.
        if cli.link().readlink().name == "1":
            assert answer.exit in (130, -signal.SIGKILL), str(answer)
            whole(cli, before)
        else:
            assert cli.installed() == {"six": "2.0.0", "big": "1.0.0", "last": "1.0.0"}
        again(cli, server)


def test_an_interrupted_first_create_goes_on_after_the_finished_step(tmp_path: Path) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    hold.touch()
    with serve({"pypi": Index(artefacts=[SEVEN, BIG, LAST])}) as server:
        cli = Cli(root=tmp_path)
        wait = {"name": "wait", "run": ["python", "-c", holding(mark, hold)]}
        write_profile(cli, server, [*NEW_STEPS[:2], wait, NEW_STEPS[2]])
        child = cli.start("create", "demo")
        wait_until(mark.exists, child)
        end(child, signal.SIGKILL)
        assert not cli.link().exists()
        hold.unlink()
        answer = done(cli.run("create", "demo"))
        assert answer.data["continued"] == "big" or answer.data["continued"] is None
        assert cli.installed() == {"six": "2.0.0", "big": "1.0.0", "last": "1.0.0"}


def test_two_creates_of_one_name(tmp_path: Path) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    hold.touch()
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, [*OLD_STEPS, {"name": "wait", "run": ["python", "-c", holding(mark, hold)]}])
        first = cli.start("create", "demo")
        wait_until(mark.exists, first)
        second = cli.run("create", "demo")
        contract(second)
        assert second.exit == 1, str(second)
        assert second.document["error"]["code"] == "locked"
        assert str(first.pid) in second.text
        hold.unlink()
        done(finish(first))
        assert cli.installed() == {"six": "1.0.0"}


def test_a_disk_that_fills(tmp_path: Path) -> None:
    huge = Wheel(name="huge", version="1.0.0", files={"huge/data.txt": noise(12_000_000)})
    with mounted(tmp_path / "forge", "size=64m"), serve({"pypi": Index(artefacts=[SIX, huge], sizes=False)}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, OLD_STEPS)
        done(cli.run("create", "demo"))
        before = digest(cli.link().resolve())
        filler = cli.home / "filler"
        filler.write_bytes(b"x" * (shutil.disk_usage(cli.home).free - 9_000_000))
        write_profile(cli, server, [*OLD_STEPS, {"name": "huge", "install": ["huge"]}])
        answer = cli.run("create", "demo", "--replace")
        contract(answer)
        assert answer.exit in (1, 4), str(answer)
        assert "disk" in answer.text, str(answer)
        whole(cli, before)
        filler.unlink()
        done(cli.run("create", "demo", "--replace"))
        assert cli.installed() == {"six": "1.0.0", "huge": "1.0.0"}


@pytest.mark.slow
def test_a_disk_that_fills_in_a_rebuild_and_an_audit(tmp_path: Path) -> None:
    huge = Wheel(name="huge", version="1.0.0", files={"huge/data.txt": noise(12_000_000)})
    with mounted(tmp_path / "forge", "size=80m"), serve({"pypi": Index(artefacts=[SIX, huge])}) as server:
        cli = Cli(root=tmp_path, variables={"ENVFORGE_LINK_MODE": "copy"})
        write_profile(cli, server, [*OLD_STEPS, {"name": "huge", "install": ["huge"]}])
        done(cli.run("create", "demo"))
        before = digest(cli.link().resolve())
        filler = cli.home / "filler"
        filler.write_bytes(b"x" * (shutil.disk_usage(cli.home).free - 9_000_000))
        answer = cli.run("rebuild", "demo")
        contract(answer)
        assert answer.exit in (1, 4), str(answer)
        assert answer.document["error"]["code"] == "disk-full", str(answer)
        whole(cli, before)
        with filler.open("ab", buffering=0) as rest, suppress(OSError):
            while True:
                rest.write(b"x" * 4096)
        done(cli.run("audit", "demo"))
        assert not (cli.home / "records/demo/1/seen.json").exists()
        for verb in ("rebuild", "rollback"):
            full = cli.run(verb, "demo", *(["demo/1.1"] if verb == "rollback" else []))
            contract(full)
            assert (full.exit in (1, 4), full.document["error"]["code"]) == (True, "disk-full"), str(full)
        whole(cli, before)
        filler.unlink()
        done(cli.run("rebuild", "demo"))
        done(cli.run("audit", "demo"))
        assert cli.installed() == {"six": "1.0.0", "huge": "1.0.0"}


@pytest.mark.slow
def test_the_network_goes_in_the_middle_of_a_rebuild(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, BIG, LAST])}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, [*OLD_STEPS, *NEW_STEPS[1:]])
        done(cli.run("create", "demo"))
        before = digest(cli.link().resolve())
        shutil.rmtree(cli.home / "cache/uv")
        offline = done(cli.run("--offline", "rebuild", "demo"), 1)
        assert offline.document["error"]["code"] == "not-cached"
        cause = offline.document["error"]["cause"]
        assert sorted(cause.split()) == sorted(f"`{each.filename}`" for each in (SIX, BIG, LAST))
        assert not (cli.home / "generations/demo/2").exists(), "nothing was built"
        server.shelves["pypi"].site.faults = [Fault(file="big-*.whl", reset=True)]
        broken = done(cli.run("rebuild", "demo"), 1)
        assert "big" in broken.text
        whole(cli, before)
        server.shelves["pypi"].site.faults = []
        answer = done(cli.run("rebuild", "demo"))
        assert (answer.data["generation"], answer.data["continued"]) == (2, "six")
    # The server is gone for good: what the cache has is enough.
    done(cli.run("rebuild", "demo"))
    done(cli.run("--offline", "rebuild", "demo"))
    assert digest(cli.link().resolve()).keys() == before.keys()
    shutil.rmtree(cli.home / "cache/uv")
    gone = done(cli.run("rebuild", "demo"), 1)
    assert gone.document["error"]["code"] == "index-unreachable", str(gone)
    assert cli.link().readlink().name == "4"


@pytest.mark.slow
def test_what_changes_an_environment_excludes_all_else_that_does(tmp_path: Path) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, [*OLD_STEPS, {"name": "wait", "run": ["python", "-c", holding(mark, hold)]}])
        done(cli.run("create", "demo"))
        mark.unlink()
        hold.touch()
        first = cli.start("rebuild", "demo")
        wait_until(mark.exists, first)
        changing = [("create", "demo", "--replace"), ("update", "demo"), ("rollback", "demo"), ("remove", "demo")]
        others = [cli.start(*words) for words in [*changing, ("rebuild", "demo")]]
        looking = [cli.start(*words) for words in [("audit", "demo"), ("audit", "demo", "--deep"), ("show", "demo")]]
        for child in others:
            answer = done(finish(child), 1)
            error = answer.document["error"]
            assert error["code"] == "locked"
            assert f"`envforge rebuild demo` of user `tester` holds its lock (process {first.pid}" in error["cause"]
        for child in looking:
            done(finish(child))
        hold.unlink()
        done(finish(first))
        assert cli.link().readlink().name == "2"


def test_a_read_only_home(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        if os.geteuid() == 0:
            with mounted(tmp_path / "forge", "ro,size=1m"):
                refused(Cli(root=tmp_path), server)
        else:
            (tmp_path / "forge").mkdir(mode=0o500)
            refused(Cli(root=tmp_path), server)


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "forge").write_text("")
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        refused(Cli(root=tmp_path), server)


def refused(cli: Cli, server: Server) -> None:
    write_profile(cli, server, OLD_STEPS)
    answer = done(cli.run("create", "demo"), 1)
    assert answer.document["error"]["code"] == "home-not-writable"
    assert str(cli.home) in answer.text


@pytest.mark.slow
def test_a_run_step_that_writes_into_a_linked_file(tmp_path: Path) -> None:
    poison = "import six; open(six.__file__, 'a').write('evil = 1\\n')"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        cli = Cli(root=tmp_path)
        write_profile(cli, server, OLD_STEPS)
        done(cli.run("create", "demo", "--name", "neighbour"))
        if (cli.site("neighbour") / "six/__init__.py").stat().st_nlink == 1:
            pytest.skip("files are no hard links on this file system: nothing is shared")
        write_profile(cli, server, [*OLD_STEPS, {"name": "poison", "run": ["python", "-c", poison]}])
        answer = cli.run("create", "demo")
        contract(answer)
        assert answer.exit in (1, 4), str(answer)
        assert not cli.link().exists()
        for said in ("poison", "six/__init__.py", "neighbour"):
            assert said in answer.text, str(answer)
        write_profile(cli, server, OLD_STEPS)
        done(cli.run("create", "demo", "--name", "clean"))
        assert "evil" not in (cli.site("clean") / "six/__init__.py").read_text()
