"""What only looks needs no write access: another user may list, show, audit and run what is not theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.check import contract
from kit.cli import Answer, Cli
from kit.index import Index, serve
from kit.wheels import Wheel

import envforge

# Another user, who may read what lies in root's own folders (the Python that runs this) and write nowhere.
BECOME = [
    "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
    "--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search",
]  # fmt: skip
LAUNCH = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('envforge', run_name='__main__')"


@pytest.fixture(scope="module")
def cli() -> Iterator[Cli]:
    """A home of root's, in a folder that all may enter, with an environment `demo`."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, by setpriv")
    if subprocess.run([*BECOME, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let root become another user")
    root = Path(tempfile.mkdtemp(prefix="envforge-looking-"))
    root.chmod(0o755)
    try:
        with serve({"pypi": Index(artefacts=[Wheel(name="six", version="1.0.0")])}) as server:
            cli = Cli(root=root)
            steps = [{"name": "six", "install": ["six"]}]
            cli.profile(server.url("pypi"), steps, commands={"hello": ["echo", "hello"]})
            assert cli.run("create", "demo").exit == 0
            yield cli
    finally:
        shutil.rmtree(root)


def as_nobody(cli: Cli, *words: str) -> Answer:
    source = str(Path(envforge.__file__).parent.parent)
    completed = subprocess.run(
        [*BECOME, sys.executable, "-c", LAUNCH, source, "--json", *words],
        cwd=cli.work,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "ENVFORGE_HOME": str(cli.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(words, completed.returncode, completed.stdout, completed.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--size"), ("show", "demo"), ("path", "demo"), ("history", "demo"), ("diff", "demo"),
        ("diff", "demo/1.0", "demo/1.1"), ("audit", "demo"), ("audit", "demo", "--deep"), ("audit", "--all"),
        ("profiles",),
    ],
)  # fmt: skip
def test_who_may_not_write_may_look(cli: Cli, words: tuple[str, ...]) -> None:
    answer = as_nobody(cli, *words)
    contract(answer)
    assert answer.exit == 0, str(answer)


def test_and_run(cli: Cli) -> None:
    answer = as_nobody(cli, "run", "demo", "hello")
    assert (answer.exit, answer.stdout) == (0, "hello\n"), str(answer)


@pytest.mark.parametrize(
    "words", [("create", "demo", "--replace"), ("rebuild", "demo"), ("rollback", "demo"), ("remove", "demo")]
)
def test_and_what_changes_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    answer = as_nobody(cli, *words)
    contract(answer)
    assert (answer.exit, answer.document["error"]["code"]) == (1, "home-not-writable"), str(answer)


def test_a_plan_needs_a_cache_that_it_may_write(cli: Cli) -> None:
    answer = as_nobody(cli, "plan", "demo")
    contract(answer)
    error = answer.document["error"]
    assert (answer.exit, error["code"]) == (1, "cache-not-writable"), str(answer)
    assert "ENVFORGE_CACHE" in error["hint"]
