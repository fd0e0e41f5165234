"""`bootstrap.sh` in a small checkout: the real script, real environments, one locked package on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.index import Index, serve
from kit.wheels import Wheel
from project.socks_proxy import SocksProxy

ROOT = Path(__file__).resolve().parents[2]
LOCKED = Wheel(name="demo", version="1.0")
PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11", "python3")
MAIN = """\
import json, os, sys
import demo
told = {"argv": sys.argv[1:], "prefix": sys.prefix, "demo": demo.__version__, "path": sys.path}
print(json.dumps({**told, "program": os.environ.get("ENVFORGE_PROGRAM")}))
"""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """``folder`` is the checkout, ``bin`` the one folder of the PATH that holds Pythons, ``wheels`` a find-links."""

    folder: Path
    bin: Path
    wheels: Path
    home: Path

    def variables(self, **more: str) -> dict[str, str]:
        fixed = {"PATH": f"{self.bin}:{self.tools}", "HOME": str(self.home), "PIP_NO_INDEX": "1"}
        return {**fixed, "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull, **more}

    @property
    def tools(self) -> Path:
        return self.bin.with_name("tools")

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.folder / "bootstrap.sh"), *arguments],
            env=self.variables(**more),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **more) as child:
            out, err = child.communicate(timeout=120)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def fake(self, name: str, body: str) -> Path:
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def without_pythons(self) -> None:
        """Every Python of the PATH is there and does not run, as a version manager's stand-ins are."""
        for name in PYTHONS:
            self.fake(name, "exit 127")

    @property
    def environments(self) -> list[Path]:
        return sorted(self.folder.glob(".venv/run-*"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout under a path with a space, and a PATH with one usable Python on it."""
    made = Checkout(
        folder=tmp_path / "check out", bin=tmp_path / "bin", wheels=tmp_path / "wheels", home=tmp_path / "home"
    )
    (made.folder / "src" / "envforge").mkdir(parents=True)
    for folder in (made.bin, made.tools, made.wheels, made.home):
        folder.mkdir()
    for tool in ("cat", "cksum", "readlink", "uname"):
        (made.tools / tool).symlink_to(str(shutil.which(tool)))
    shutil.copy(ROOT / "bootstrap.sh", made.folder)
    shutil.copytree(ROOT / "scripts", made.folder / "scripts")
    (made.folder / "src" / "envforge" / "__init__.py").touch()
    (made.folder / "src" / "envforge" / "__main__.py").write_text(MAIN, encoding="utf-8")
    lock(made, LOCKED)
    (made.wheels / LOCKED.filename).write_bytes(LOCKED.bytes())
    made.without_pythons()
    (made.bin / "python3.11").unlink()
    (made.bin / "python3.11").symlink_to(os.path.realpath(sys.executable))
    return made


def lock(checkout: Checkout, wheel: Wheel) -> None:
    digest = hashlib.sha256(wheel.bytes()).hexdigest()
    text = f"{wheel.name}=={wheel.version} \\\n    --hash=sha256:{digest}\n"
    (checkout.folder / "requirements.lock").write_text(text, encoding="utf-8")


def test_makes_the_environment_once_then_runs_envforge_from_it(checkout: Checkout) -> None:
    done = checkout.run("plan", "two words", PYTHONPATH=str(checkout.home))

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["argv"] == ["plan", "two words"]
    assert answer["demo"] == "1.0"
    assert str(checkout.home) not in answer["path"], "neither the working folder nor PYTHONPATH is searched"
    assert done.stderr.count("\n") == 1
    assert "installing 1 locked packages" in done.stderr
    assert str(checkout.wheels) in done.stderr

    checkout.without_pythons()
    elsewhere = checkout.home / "envforge"
    elsewhere.symlink_to(checkout.folder / "bootstrap.sh")
    again = subprocess.run([elsewhere], env=checkout.variables(), capture_output=True, text=True, check=False)

    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout)["prefix"] == answer["prefix"]
    assert json.loads(again.stdout)["program"] == str(elsewhere), "messages say what was typed"

    command = checkout.folder / ".venv" / "run" / "bin" / "envforge"
    alone = subprocess.run([command, "list"], env={}, capture_output=True, text=True, check=True)

    assert json.loads(alone.stdout)["argv"] == ["list"]


@pytest.mark.slow
def test_another_lock_makes_another_environment(checkout: Checkout) -> None:
    checkout.run()
    (former,) = checkout.environments
    old = former.with_name("run-1")
    old.mkdir()
    os.utime(old, (0, 0))
    newer = Wheel(name="demo", version="2.0")
    (checkout.wheels / newer.filename).write_bytes(newer.bytes())
    lock(checkout, newer)

    done = checkout.run()

    assert json.loads(done.stdout)["demo"] == "2.0"
    assert former in checkout.environments, "a command may still be running in it"
    assert old not in checkout.environments


@pytest.mark.slow
def test_a_checkout_that_moved_gets_a_new_environment(checkout: Checkout) -> None:
    checkout.run()
    moved = Checkout(folder=checkout.home / "moved", bin=checkout.bin, wheels=checkout.wheels, home=checkout.home)
    checkout.folder.rename(moved.folder)

    done = moved.run()

    assert json.loads(done.stdout)["prefix"].startswith(str(moved.folder))


@pytest.mark.slow
def test_killed_midway_the_next_start_repairs(checkout: Checkout) -> None:
    with checkout.start() as child:
        while not list(checkout.folder.glob(".venv/run-*/bin/python")):
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
    assert not list(checkout.folder.glob(".venv/run-*/complete"))

    done = checkout.run()

    assert json.loads(done.stdout)["demo"] == "1.0"


def test_interrupted_it_says_so_without_a_traceback(checkout: Checkout) -> None:
    with checkout.start() as child:
        while not list(checkout.folder.glob(".venv/run-*/bin/python")):
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=60)

    assert child.returncode != 0
    assert "Traceback" not in err


@pytest.mark.slow
def test_of_two_starts_at_once_one_does_the_work(checkout: Checkout) -> None:
    with checkout.start("a") as one, checkout.start("b") as other:
        answers = [child.communicate(timeout=120) for child in (one, other)]

    assert [json.loads(out)["argv"] for out, _ in answers] == [["a"], ["b"]]
    assert sum(err.count("installing") for _, err in answers) == 1


@pytest.mark.slow
def test_what_is_for_other_work_in_pips_configuration_is_left_out(checkout: Checkout) -> None:
    (checkout.home / "constraints.txt").write_text("demo==99\n", encoding="utf-8")
    target = checkout.home / "target"
    configuration = checkout.home / "pip.conf"
    configuration.write_text(
        f"[global]\nuser = true\nconstraint = {checkout.home}/constraints.txt\n[install]\nno-binary = :all:\n",
        encoding="utf-8",
    )

    done = checkout.run(PIP_CONFIG_FILE=str(configuration), PIP_TARGET=str(target))

    assert done.returncode == 0, done.stderr
    assert not target.exists()


@pytest.mark.slow
def test_another_build_in_find_links_gives_way_to_the_locked_one(checkout: Checkout) -> None:
    (checkout.wheels / LOCKED.filename).write_bytes(LOCKED.tampered())
    with serve({"mirror": Index(artefacts=(LOCKED,))}) as server:
        done = checkout.run(PIP_NO_INDEX="0", PIP_INDEX_URL=server.url("mirror"))

    assert done.returncode == 0, done.stderr
    assert server.url("mirror") in done.stderr


@pytest.mark.slow
def test_other_bytes_than_the_locked_are_refused(checkout: Checkout) -> None:
    (checkout.wheels / LOCKED.filename).write_bytes(LOCKED.tampered())

    done = checkout.run()

    assert (done.returncode, done.stdout) == (1, "")
    assert "serves other files than the locked ones" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_package_that_no_index_has_is_told(checkout: Checkout) -> None:
    (checkout.wheels / LOCKED.filename).unlink()

    done = checkout.run()

    assert done.returncode == 1
    assert "lacks a locked file" in done.stderr.splitlines()[-1]


@pytest.fixture
def socks() -> Iterator[SocksProxy]:
    with SocksProxy() as proxy:
        yield proxy


@pytest.mark.slow
def test_everything_goes_through_a_socks_proxy(checkout: Checkout, socks: SocksProxy) -> None:
    with serve({"mirror": Index(artefacts=(LOCKED,))}) as server:
        socks.leads_to = ("127.0.0.1", int(server.base.rpartition(":")[2]))
        done = checkout.run(
            PIP_NO_INDEX="0",
            PIP_FIND_LINKS="",
            PIP_INDEX_URL=server.url("mirror").replace(server.base, "http://mirror.invalid"),
            PIP_TRUSTED_HOST="mirror.invalid",
            ALL_PROXY=f"socks://somebody:secret@127.0.0.1:{socks.port}",
        )

    assert done.returncode == 0, done.stderr
    assert socks.asked == {("mirror.invalid", 80)}, "the proxy looks names up"
    assert socks.people == {("somebody", "secret")}
    assert f"through the proxy socks5h://127.0.0.1:{socks.port}" in done.stderr
    assert "secret" not in done.stderr


def refusal(checkout: Checkout, **more: str) -> str:
    """The one line that a start without a usable Python ends with."""
    done = checkout.run(**more)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert not (checkout.folder / ".venv").exists()
    return done.stderr


def test_no_python_at_all(checkout: Checkout) -> None:
    for name in PYTHONS:
        (checkout.bin / name).unlink()

    assert "no Python found" in refusal(checkout)


def test_a_too_old_python(checkout: Checkout) -> None:
    checkout.without_pythons()
    old = checkout.fake("python3", "echo old 3.9")

    assert f"found only Python 3.9 ({old})" in refusal(checkout)


def test_a_python_without_the_venv_module(checkout: Checkout) -> None:
    checkout.without_pythons()
    checkout.fake("python3.12", "echo bare 3.12")
    checkout.fake("python3", "echo old 3.9")

    assert "`apt install python3.12-venv`" in refusal(checkout)


def test_the_python_asked_for_is_the_only_one_tried(checkout: Checkout) -> None:
    old = checkout.fake("mine", "echo old 3.10")

    assert f"ENVFORGE_PYTHON ({old}) is Python 3.10" in refusal(checkout, ENVFORGE_PYTHON=str(old))
    assert "is no Python that runs" in refusal(checkout, ENVFORGE_PYTHON="/nowhere/python3")


@pytest.mark.slow
def test_condas_base_will_do(checkout: Checkout) -> None:
    checkout.without_pythons()
    base = checkout.home / "conda" / "bin"
    base.mkdir(parents=True)
    (base / "python3").symlink_to(os.path.realpath(sys.executable))

    done = checkout.run(CONDA_EXE=str(base / "conda"))

    assert done.returncode == 0, done.stderr


def test_a_place_that_cannot_be_written_is_told(checkout: Checkout) -> None:
    (checkout.folder / ".venv").touch()

    done = checkout.run()

    assert (done.returncode, done.stdout) == (1, "")
    assert "bootstrap: cannot make" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.network
@pytest.mark.slow
def test_the_real_checkout_from_the_index(tmp_path: Path) -> None:
    for name in ("bootstrap.sh", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("scripts", "src", "profiles", "recipes"):
        shutil.copytree(ROOT / name, tmp_path / name)

    done = subprocess.run([tmp_path / "bootstrap.sh", "--version"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "envforge" in done.stdout
