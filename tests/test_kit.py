"""The kit itself, proved with uv and pip alone: what envforge meets in the worlds is what they accept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.cli import Cli
from kit.index import Fault, Index, Server, serve
from kit.wheels import Sdist, Wheel
from uv import find_uv_bin

TORCH = Wheel(name="torch", version="2.7.1+cu126", requires=("nvidia-nccl>=2",), extras={"opt": ("opt-einsum",)})
NCCL = Wheel(name="nvidia-nccl", version="2.27", files={"nvidia/nccl/lib/libnccl.so.2": "a library"})
EINSUM = Wheel(name="opt_einsum", version="3.4", scripts={"einsum": "opt_einsum:main"}, build="2")
ALL = (TORCH, NCCL, EINSUM)


def uv(tmp_path: Path, address: Server | str, *arguments: str, retries: int = 0) -> subprocess.CompletedProcess[str]:
    """`uv pip install --target` from one index, nothing of the host's settings in reach."""
    url = address if isinstance(address, str) else address.url("main")
    command = [
        find_uv_bin(), "pip", "install", "--python", sys.executable, "--target", str(tmp_path / "site"),
        "--default-index", url, "--cache-dir", str(tmp_path / "cache"), *arguments,
    ]  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "UV_NO_CONFIG": "1", "UV_HTTP_TIMEOUT": "1",
        "UV_HTTP_RETRIES": str(retries),
    }  # fmt: skip
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def installed(tmp_path: Path) -> set[str]:
    return {path.name.removesuffix(".dist-info") for path in (tmp_path / "site").glob("*.dist-info")}


EVERY_KIND = [
    Index(artefacts=ALL),
    Index(artefacts=ALL, page="html"),
    Index(artefacts=ALL, page="html", metadata=False, hashes=False, urls="absolute"),
    Index(artefacts=ALL, metadata=False, sizes=False, urls="elsewhere"),
    Index(artefacts=ALL, metadata=False, ranges=False),
    Index(artefacts=ALL, metadata="unadvertised"),
]
KINDS = ["json", "html", "bare html", "elsewhere", "no ranges", "unadvertised"]


@pytest.mark.parametrize("index", EVERY_KIND, ids=KINDS)
def test_uv_installs_from_every_kind_of_page(tmp_path: Path, index: Index) -> None:
    with serve({"main": index}) as server:
        done = uv(tmp_path, server, "torch[opt]")
        assert done.returncode == 0, done.stderr
        assert installed(tmp_path) == {"torch-2.7.1+cu126", "nvidia_nccl-2.27", "opt_einsum-3.4"}
        assert bool(server.requests("metadata")) == (index.metadata is True)
        assert bool([r for r in server.requests("file") if "Range" in r.headers or "range" in r.headers]) == (
            index.metadata is not True and index.ranges
        )


@pytest.mark.parametrize("index", EVERY_KIND[:3], ids=KINDS[:3])
def test_pip_installs_from_it_too(tmp_path: Path, index: Index) -> None:
    with serve({"main": index}) as server:
        command = [
            sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-cache-dir",
            "--target", str(tmp_path / "site"), "--index-url", server.url("main"), "torch[opt]",
        ]  # fmt: skip
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if "No module named pip" in done.stderr:
            pytest.skip("no pip beside the interpreter of the tests")
        assert done.returncode == 0, done.stderr
        assert installed(tmp_path) == {"torch-2.7.1+cu126", "nvidia_nccl-2.27", "opt_einsum-3.4"}


def test_wheels_are_the_same_bytes_every_time() -> None:
    assert [wheel.bytes() for wheel in ALL] == [wheel.bytes() for wheel in ALL]
    assert Sdist(wheel=NCCL).bytes() == Sdist(wheel=NCCL).bytes()


def test_another_content_under_a_right_name_is_refused(tmp_path: Path) -> None:
    with serve({"main": Index(artefacts=ALL, faults=[Fault(file="torch-*.whl", other=True)])}) as server:
        done = uv(tmp_path, server, "torch", "--no-deps")
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()


def test_a_counted_fault_ends(tmp_path: Path) -> None:
    with serve({"main": Index(artefacts=ALL, faults=[Fault(page="torch", status=503, times=1)])}) as server:
        done = uv(tmp_path, server, "torch", retries=1)
        assert done.returncode == 0, done.stderr
        assert [request.status for request in server.requests("page", "torch")] == [503, 200]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(file="torch-*.whl", status=404), Fault(file="torch-*.whl", reset=True),
        Fault(file="torch-*.whl", truncate=True), Fault(file="torch-*.whl", hang=True),
        Fault(page="torch", status=401),
    ],
    ids=["404", "reset", "truncated", "hangs", "401"],
)  # fmt: skip
def test_faults_that_stay_fail_the_install(tmp_path: Path, fault: Fault) -> None:
    with serve({"main": Index(artefacts=ALL, faults=[fault])}) as server:
        assert uv(tmp_path, server, "torch").returncode != 0


def test_a_slow_file_comes_whole(tmp_path: Path) -> None:
    with serve({"main": Index(artefacts=[NCCL], faults=[Fault(file="*.whl", rate=4000)])}) as server:
        assert uv(tmp_path, server, "nvidia-nccl").returncode == 0


def test_credentials_are_asked_for(tmp_path: Path) -> None:
    with serve({"main": Index(artefacts=[NCCL], auth="user:secret")}) as server:
        assert uv(tmp_path, server, "nvidia-nccl").returncode != 0
        address = server.url("main").replace("http://", "http://user:secret@")
        assert uv(tmp_path, address, "nvidia-nccl").returncode == 0


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_an_sdist_builds_without_any_requirement(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "builds"
    sdist = Sdist(
        wheel=Wheel(name="built", version="1.0", requires=("nvidia-nccl",)),
        metadata="static" if kind == "static" else "dynamic", log=str(log),
    )  # fmt: skip
    with serve({"main": Index(artefacts=[sdist, NCCL])}) as server:
        done = uv(tmp_path, server, "built", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert log.exists() == (kind == "dynamic")
        done = uv(tmp_path, server, "built")
        assert done.returncode == 0, done.stderr
    assert "built-1.0 wheel" in log.read_text().splitlines()
    assert (tmp_path / "site/built/built.py").read_text().startswith("token = ")
    assert installed(tmp_path) == {"built-1.0", "nvidia_nccl-2.27"}


def test_a_release_can_appear_later(tmp_path: Path) -> None:
    with serve({"main": Index(artefacts=[NCCL])}) as server:
        assert uv(tmp_path, server, "opt-einsum").returncode != 0
        server.put("main", EINSUM)
        server.forget()
        done = uv(tmp_path, server, "opt-einsum")
        assert done.returncode == 0, done.stderr
        assert [request.name for request in server.requests("page")] == ["opt-einsum"]


def test_a_command_that_is_forked_is_the_one_that_is_started(tmp_path: Path) -> None:
    """The second is: a variable that an interpreter reads as it starts cannot be given to what runs already."""
    answers = [Cli(root=tmp_path, variables=variables).run("show", "e") for variables in ({}, {"LANG": "C.UTF-8"})]
    assert answers[0] == answers[1]
    assert answers[0].exit == 2
