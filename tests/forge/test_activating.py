"""What runs in an environment of conda's gets what its packages want to be set, as `conda activate` would do it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forge.conda_house import house, profile
from kit.channel import Package
from kit.check import ended
from kit.cli import Cli

SCRIPTS = Package(
    name="scripts",
    version="1.0",
    files={
        "etc/conda/activate.d/1-first.sh": 'export FIRST="$CONDA_PREFIX/share" ODD="a\nb=\'c"; PLAIN=not-exported\n'
        'export PATH="$CONDA_PREFIX/share/tools:$PATH" OF_PROFILE=theirs SEEN="$OF_PROFILE"; unset HOST_GONE\n'
        '[ -n "$NOWHERE" ] && export NOWHERE\n',
        "etc/conda/activate.d/2-second.sh": 'export SECOND="${FIRST##*/} $#"\n',
        "etc/conda/activate.d/other.fish": "exit 1\n",
        "etc/conda/deactivate.d/first.sh": "exit 1\n",
        "etc/conda/env_vars.d/scripts.json": '{"declared": "yes", "OF_PROFILE": "declared"}',
        "share/tools/tool": "#!/bin/sh\necho tool\n",
    },
    executable=("share/tools/*",),
)
BROKEN = Package(
    name="broken",
    version="1.0",
    files={
        "etc/conda/activate.d/a-good.sh": "export GOOD=1\n",
        "etc/conda/activate.d/b-syntax.sh": "if then\n",
        "etc/conda/activate.d/c-leaves.sh": "export LOST=1\nexit 3\n",
        "etc/conda/activate.d/d-complains.sh": "export KEPT=1\necho no such compiler >&2\nreturn 1\n",
        "etc/conda/env_vars.d/broken.json": "[]",
    },
)
TELL = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    root = tmp_path_factory.mktemp("activating")
    with house(root, SCRIPTS, BROKEN, variables={"HOST_GONE": "1", "VIRTUAL_ENV": "/v", "PLAIN": "host"}) as (
        cli,
        forge,
    ):
        see = {
            "name": "see",
            "run": ["sh", "-c", 'echo "$FIRST $OF_STEP" > share/seen'],
            "environment": {"OF_STEP": "s"},
        }
        smoke = [{"command": ["tool"]}, {"python": "import os; assert os.environ['SEEN'] == 'own'"}]
        more: dict[str, Any] = {"environment": {"OF_PROFILE": "own"}, "commands": {"see": ["python", "-c", TELL]}}
        profile(cli, forge, "scripts", steps=[see], smoke=smoke, **more)
        ended(cli.run("create", "demo"))
        profile(cli, forge, "broken", name="broken", **more)
        ended(cli.run("create", "broken"))
        yield cli


def started(cli: Cli, *words: str) -> subprocess.CompletedProcess[str]:
    child = cli.start("run", *words)
    out, err = child.communicate()
    return subprocess.CompletedProcess(words, child.returncode, out, err)


def test_the_environment_is_condas_and_no_other_is_active(built: Cli) -> None:
    done = started(built, "demo", "see")
    variables = json.loads(done.stdout)
    prefix = str(built.link().resolve())
    assert (variables["CONDA_PREFIX"], variables["CONDA_DEFAULT_ENV"]) == (prefix, "demo")
    assert "VIRTUAL_ENV" not in variables
    assert variables["PATH"].split(":")[:2] == [f"{prefix}/share/tools", f"{prefix}/bin"]
    assert done.stderr == ""


def test_scripts_of_packages_take_effect_and_the_profile_wins(built: Cli) -> None:
    variables = json.loads(started(built, "demo", "see").stdout)
    prefix = str(built.link().resolve())
    told = {name: variables.get(name) for name in ("FIRST", "SECOND", "ODD", "DECLARED", "SEEN", "OF_PROFILE")}
    assert told == {
        "FIRST": f"{prefix}/share", "SECOND": "share 0", "ODD": "a\nb='c", "DECLARED": "yes", "SEEN": "own",
        "OF_PROFILE": "own",
    }  # fmt: skip
    assert (variables.get("HOST_GONE"), variables["PLAIN"], variables["PYTHONNOUSERSITE"]) == (
        None,
        "not-exported",
        "1",
    )


def test_steps_and_smoke_checks_get_them_too(built: Cli) -> None:
    prefix = built.link().resolve()
    assert (prefix / "share/seen").read_text() == f"{prefix}/share s\n"


def test_status_and_signals_are_still_the_commands_own(built: Cli) -> None:
    assert started(built, "demo", "sh", "-c", "exit 7").returncode == 7
    assert started(built, "demo", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    assert started(built, "demo", "tool").stdout == "tool\n"


def test_a_script_that_fails_is_named_and_the_others_count(built: Cli) -> None:
    done = started(built, "broken", "see")
    variables = json.loads(done.stdout)
    assert {name: variables.get(name) for name in ("GOOD", "LOST", "KEPT")} == {"GOOD": "1", "LOST": None, "KEPT": "1"}
    said = done.stderr.splitlines()
    assert [line.partition("`")[2].partition("`")[0] for line in said] == [
        f"etc/conda/{place}"
        for place in (
            "env_vars.d/broken.json",
            "activate.d/b-syntax.sh",
            "activate.d/c-leaves.sh",
            "activate.d/d-complains.sh",
        )
    ]
    assert said[2].endswith("fails: exit status 3")
    assert said[3].endswith("fails: exit status 1: no such compiler")


def test_a_script_of_nobody_is_refused_before_it_runs(tmp_path: Path) -> None:
    with house(tmp_path) as (cli, server):
        profile(cli, server)
        ended(cli.run("create", "demo"))
        assert started(cli, "--strict", "demo", "true").returncode == 0
        folder = cli.link() / "etc/conda/activate.d"
        folder.mkdir(parents=True)
        (folder / "late.sh").write_text(f"touch {tmp_path}/ran\n")
        done = started(cli, "--strict", "demo", "true")
        assert done.returncode == 125
        assert "etc/conda/activate.d/late.sh is new" in done.stderr
        assert not (tmp_path / "ran").exists()
        assert started(cli, "demo", "true").returncode == 0
        assert (tmp_path / "ran").exists()


def test_a_venv_is_none_of_condas(tmp_path: Path) -> None:
    with house(tmp_path, variables={"CONDA_PREFIX": "/c", "CONDA_DEFAULT_ENV": "base"}) as (cli, server):
        cli.profile(server.url("pypi"), [], commands={"see": ["python", "-c", TELL]})
        ended(cli.run("create", "demo"))
        variables = json.loads(started(cli, "demo", "see").stdout)
        assert variables["VIRTUAL_ENV"] == str(cli.link().resolve())
        assert not {"CONDA_PREFIX", "CONDA_DEFAULT_ENV"}.intersection(variables)


@pytest.mark.slow
def test_the_activation_scripts_of_a_venv_are_recorded_as_they_are(tmp_path: Path) -> None:
    with house(tmp_path) as (cli, server):
        cli.profile(server.url("pypi"), [{"name": "six", "install": ["six"]}], environment={"OURS": "it's"})
        ended(cli.run("create", "demo"))
        script = cli.link() / "bin/activate"
        lines = (
            f"unset PYTHONNOUSERSITE; . '{script}'; echo $VIRTUAL_ENV $OURS $PYTHONNOUSERSITE; deactivate; echo $OURS."
        )
        said = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, check=True).stdout
        assert said == f"{cli.link().resolve()} it's 1\n.\n"
        assert ended(cli.run("audit", "demo", "--deep")).data["events"] == []
        text = script.read_text()
        script.unlink()
        (cli.link() / "bin/activate.fish").write_text("echo other\n")
        ended(cli.run("repair", "demo"))
        assert script.read_text() == text
        assert ended(cli.run("audit", "demo", "--deep")).data["events"] == []
        ended(cli.run("rebuild", "demo"))
        assert ended(cli.run("diff", "demo/1.1", "demo/2.1", "--files")).data["files"] == []


@pytest.mark.slow
def test_generations_of_conda_packages_differ_in_what_the_profile_says(tmp_path: Path) -> None:
    with house(tmp_path) as (cli, server):
        odd = {"Small": "1", "QUOTED": "it's", "EMPTY": ""}
        profile(cli, server, "prefixed", "demo", environment=odd)
        answer = ended(cli.run("create", "demo"))
        assert (
            "`conda activate` cannot set `Small`, `QUOTED` as the profile has it; `envforge run` does" in answer.stderr
        )
        state = json.loads((cli.link() / "conda-meta/state").read_text())
        assert state["env_vars"] == {**odd, "PYTHONNOUSERSITE": "1"}
        ended(cli.run("rebuild", "demo"))
        between = ["diff", "demo/1.1", "demo/2.1", "--files"]
        assert ended(cli.run(*between)).data["files"] == []
        profile(cli, server, "prefixed", "demo", environment={})
        ended(cli.run("update", "demo"))
        [file] = ended(cli.run("diff", "demo/1.1", "demo/3.1", "--files")).data["files"]
        assert (file["path"], file["kind"]) == ("conda-meta/state", "changed")
        (cli.link() / "share/prefixed/text").write_text("other")
        [file] = ended(cli.run("diff", "demo/3.1", "demo", "--files")).data["files"]
        assert (file["path"], file["owners"]) == ("share/prefixed/text", ["prefixed"])
