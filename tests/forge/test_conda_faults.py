"""What goes wrong around conda packages is told in words that help."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from forge import conda_house
from kit import packages
from kit.channel import Channel, Package
from kit.check import ended, errors
from kit.cli import PYTHON, Cli, finish
from kit.index import Fault, Index, Server, serve

POST = Package(name="post", version="1", files={"bin/.post-post-link.sh": "#!/bin/sh\ntouch $PREFIX/ran\n"})
STEP = {"name": "then", "conda": ["post"]}


@pytest.mark.slow
@pytest.mark.parametrize("step", [False, True])
def test_a_script_that_conda_would_run_is_told_and_not_run(tmp_path: Path, step: bool) -> None:
    with conda_house.house(tmp_path, POST) as (cli, server):
        conda_house.profile(cli, server, *([] if step else ["post"]), steps=[STEP] if step else [])
        told = [line for line in ended(cli.run("create", "demo")).stderr.splitlines() if "post-link" in line]
        assert len(told) == 1, told
        assert "`bin/.post-post-link.sh`, which conda would run" in told[0]
        assert not (cli.link() / "ran").exists()


def workers(root: Path) -> Iterator[int]:
    """The processes that work for a command whose all is in ``root``."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(b"conda_worker.py") for word in words) and any(
            os.fsencode(root) in word for word in words
        ):
            yield int(place.parent.name)


def kill_worker(cli: Cli, server: Server) -> None:
    """Kill it while it waits for a channel that does not answer."""
    while not server.requests("page", index="forge") or not (found := list(workers(cli.root))):
        time.sleep(0.02)
    os.kill(found[0], signal.SIGKILL)


def test_a_worker_that_is_killed_is_told_and_the_same_command_heals(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    forge = Channel(packages=(packages.python(),), faults=(Fault(page="*", hang=True, times=1),))
    with serve({"forge": forge, "pypi": Index()}) as server:
        conda_house.profile(cli, server, steps=[])
        child = cli.start("create", "demo")
        kill_worker(cli, server)
        error = ended(finish(child), 1).document["error"]
        assert (error["code"], error["cause"]) == ("engine-failed", None)
        assert "killed by SIGKILL" in error["message"]
        assert "run the same command again" in error["hint"]
        assert not list(tmp_path.glob("forge/cache/scratch/*"))
        ended(cli.run("create", "demo"))


def test_a_record_that_names_what_is_outside_is_conda_metas(tmp_path: Path) -> None:
    with conda_house.house(tmp_path) as (cli, server):
        conda_house.profile(cli, server, "prefixed", steps=[])
        ended(cli.run("create", "demo"))
        [file] = cli.link().glob("conda-meta/prefixed-*")
        file.write_text(file.read_text().replace("share/prefixed/text", "../elsewhere"))
        answer = ended(cli.run("audit", "demo"), 3)
        [told] = [each for each in answer.document["findings"] if each["id"] == "record-missing"]
        assert told["message"].startswith("conda-meta of `prefixed` claims a file outside")
        assert ("package-changed", "prefixed") in errors(answer)
        file.write_text(file.read_text().replace("../elsewhere", "share/prefixed/text") + "\n")
        [told] = [
            each for each in ended(cli.run("audit", "demo"), 3).document["findings"] if each["severity"] == "error"
        ]
        assert "another record in conda-meta" in told["message"]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["repodata", "pkgs"])
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, part: str) -> None:
    with conda_house.house(tmp_path, POST, plain=True) as (cli, server):
        conda_house.profile(cli, server, steps=[])
        ended(cli.run("create", "demo"))
        conda_house.profile(cli, server, "post", steps=[])
        folder = cli.home / "cache/conda" / part
        folder.chmod(0o555)
        for file in folder.glob("*.json"):
            file.unlink()
        try:
            error = ended(cli.run("create", "demo", "--replace"), 1).document["error"]
        finally:
            folder.chmod(0o755)
        assert error["code"] == "cache-not-writable", error
        assert str(cli.home / "cache") in error["message"]
        assert "ENVFORGE_CACHE" in error["hint"]
        ended(cli.run("create", "demo", "--replace"))


@pytest.mark.slow
def test_a_cache_whose_path_is_too_long_is_told_as_that(tmp_path: Path) -> None:
    with conda_house.house(tmp_path) as (cli, server):
        conda_house.profile(cli, server, steps=[])
        home = tmp_path / ("h" * (245 - len(f"{tmp_path}/" + "/generations/demo/1")))
        error = ended(cli.run("--home", str(home), "create", "demo"), 1).document["error"]
        assert (error["code"], "in the cache" in error["message"]) == ("prefix-too-long", True)
        assert "ENVFORGE_CACHE" in error["hint"]
        short = Cli(root=tmp_path, variables={"ENVFORGE_CACHE": str(tmp_path / "cache")})
        ended(short.run("--home", str(home), "create", "demo"))
        ended(short.run("--home", str(home), "audit", "demo", "--deep"))


def test_a_python_that_does_not_work_is_the_channels(tmp_path: Path) -> None:
    broken = Package(name="broken", version="1", files={f"bin/python{PYTHON}": "#!/bin/sh\nexit 3\n"})
    with conda_house.house(tmp_path, broken) as (cli, server):
        conda_house.profile(cli, server, "broken", steps=[])
        error = ended(cli.run("create", "demo"), 1).document["error"]
        assert (error["code"], "the base of `demo` brings" in error["message"]) == ("python-broken", True)
        assert "conda.packages" in error["hint"]


@pytest.mark.slow
def test_what_a_package_brings_as_condas_notes_is_no_drift(tmp_path: Path) -> None:
    notes = Package(name="notes", version="1", files={"conda-meta/history": "x\n", "conda-meta/state": "{}"})
    with conda_house.house(tmp_path, notes) as (cli, server):
        conda_house.profile(cli, server, "notes", steps=[{"name": "then", "conda": ["prefixed"]}])
        ended(cli.run("create", "demo"))
        ended(cli.run("audit", "demo", "--deep"))
        assert "prefixed" in (cli.link() / "conda-meta/history").read_text()
