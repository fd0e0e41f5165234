"""One path that several owners bring: who wins is told, stays so, and names the place where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import packages
from kit.channel import Channel
from kit.check import ended
from kit.cli import Cli
from kit.index import Index, serve
from kit.wheels import Wheel

TOOL = packages.module("tool", "1.0", files={"tool/__init__.py": "def main(): ...\n"}, scripts={"tool": "tool:main"})
FORGE = Channel(packages=(packages.python(), TOOL))
WHEELS = tuple(
    Wheel(name=name, version="1", files={f"{name}/__init__.py": f"def main():\n    print('{name}')\n"}, scripts=scripts)
    for name, scripts in (("one", {"same": "one:main"}), ("two", {"same": "two:main", "tool": "two:main"}))
)
STEPS = ({"name": "one", "install": ["one"]}, {"name": "two", "install": ["two"]})


@pytest.mark.parametrize("backend", ["venv", "conda"])
def test_the_winner_of_a_script_runs_in_the_generation_that_is_built_again(tmp_path: Path, backend: str) -> None:
    cli = Cli(root=tmp_path)
    scripts = ["same", "tool"]
    with serve({"forge": FORGE, "pypi": Index(artefacts=WHEELS)}) as server:
        conda = {"channels": [server.url("forge")], "packages": ["tool"]}
        more = {"backend": "conda", "conda": conda} if backend == "conda" else {}
        cli.profile(server.url("pypi"), STEPS, **more)
        ended(cli.run("create", "demo"))
        ended(cli.run("rebuild", "demo"))
        prefix = cli.link().resolve()
        assert prefix.name == "2"
        for script in scripts:
            assert (prefix / "bin" / script).read_text().startswith(f"#!{prefix}/bin/python")
            assert cli.run("run", "demo", script).stdout == "two\n"
        told = [
            each for each in ended(cli.run("audit", "demo", "--deep")).document["findings"] if "bin/" in each["subject"]
        ]
        assert {winner for each in told for winner in each["evidence"]["winners"]} == {"two"}
