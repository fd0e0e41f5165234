from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from envforge.probe.processes import using
from envforge.system import environ


@contextmanager
def running(*argv: str | Path, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> Iterator[int]:
    with subprocess.Popen(
        argv, cwd=cwd, env={**os.environ, **(variables or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
        child.communicate()


WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


def test_nobody_uses_a_fresh_prefix(venv: Path) -> None:
    assert using(venv) == ()


def test_a_python_of_the_prefix_is_found_through_the_symlink_too(venv: Path) -> None:
    link = venv.parent / "env"
    link.symlink_to("venv")
    for start in (venv, link):
        with running(start / "bin" / "python", "-c", WAIT) as pid:
            for looked_at in (venv, link):
                (found,) = using(looked_at)
                assert found.pid == pid
                assert found.user == environ.user()
                assert found.argv[0] == str(start / "bin" / "python")
    assert using(venv) == ()


def test_who_stands_in_the_prefix_or_maps_a_file_of_it_is_found(venv: Path) -> None:
    with running(sys.executable, "-c", WAIT, cwd=venv / "bin") as pid:
        assert [process.pid for process in using(venv)] == [pid]
    library = venv / "lib" / "library.so"
    library.write_bytes(b"x" * 4096)
    code = f"import mmap; f = open({str(library)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); {WAIT}"
    with running(sys.executable, "-c", code) as pid:
        assert [process.pid for process in using(venv)] == [pid]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_whoever_has_it_activated_uses_it(venv: Path, tmp_path: Path, variable: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(venv)
    with running(sys.executable, "-c", WAIT, variables={variable: str(link)}) as pid:
        assert [process.pid for process in using(venv)] == [pid]


def test_a_neighbour_with_a_longer_name_is_not_it(venv: Path, tmp_path: Path) -> None:
    neighbour = tmp_path / "venv2"
    neighbour.mkdir()
    with running(sys.executable, "-c", WAIT, cwd=neighbour):
        assert using(venv) == ()


def test_processes_that_come_and_go_do_no_harm(venv: Path) -> None:
    stop = time.monotonic() + 0.3
    while time.monotonic() < stop:
        children = [subprocess.Popen(["/bin/true"]) for _ in range(3)]
        assert using(venv) == ()
        for child in children:
            child.wait()


@pytest.mark.parametrize("prefix", ["/nonexistent/prefix"])
def test_a_prefix_that_is_gone_is_used_by_nobody(prefix: str) -> None:
    assert using(Path(prefix)) == ()
