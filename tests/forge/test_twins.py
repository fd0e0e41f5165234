"""One path that several owners bring: who wins is told, stays so, and names the place where it lies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from kit import packages
from kit.channel import Channel, Package
from kit.check import ended, errors
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


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["venv", "conda"])
def test_the_winner_of_a_script_runs_in_the_generation_that_is_built_again(tmp_path: Path, backend: str) -> None:
    cli = Cli(root=tmp_path)
    scripts = ["same", "tool"]
    with serve({"forge": FORGE, "pypi": Index(artefacts=WHEELS)}) as server:
        conda = {"channels": [server.url("forge")], "packages": ["tool"]}
        more: dict[str, Any] = {"backend": "conda", "conda": conda} if backend == "conda" else {}
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


FIRST = Package(name="first", version="1", files={"share/twin": "first\n", "share/equal": "equal\n"})
SECOND = Package(name="second", version="1", files={"share/twin": "second\n", "share/equal": "equal\n"})


@pytest.mark.slow
@pytest.mark.parametrize(("base", "step"), [("first second", ""), ("first", "second"), ("second", "first")])
def test_what_two_conda_packages_bring_is_told_and_repaired(tmp_path: Path, base: str, step: str) -> None:
    cli = Cli(root=tmp_path)
    with serve({"forge": Channel(packages=(packages.python(), FIRST, SECOND)), "pypi": Index()}) as server:
        conda = {"channels": [server.url("forge")], "packages": base.split()}
        steps = [{"name": "then", "conda": [step]}] if step else []
        cli.profile(server.url("pypi"), steps, backend="conda", conda=conda)
        ended(cli.run("create", "demo"))
        answer = ended(cli.run("audit", "demo", "--deep"))
        [told] = [each for each in answer.document["findings"] if each["id"] == "file-clobbered"]
        assert (told["severity"], told["subject"]) == ("warning", "share/twin")
        assert (told["evidence"]["owners"], told["evidence"]["winners"]) == (["first", "second"], ["first"])

        prefix = cli.link().resolve()
        shutil.rmtree(prefix / "__clobbers__")
        (prefix / "share/twin").unlink()
        next(prefix.glob("conda-meta/second-*")).unlink()
        found = errors(ended(cli.run("audit", "demo"), 3))
        assert found == {("file-missing", "first"), ("package-missing", "second")}
        ended(cli.run("repair", "demo"))
        ended(cli.run("audit", "demo", "--deep"))
        assert (prefix / "share/twin").read_text() == "first\n"


def test_a_module_that_two_conda_packages_bring_is_refused(tmp_path: Path) -> None:
    other = packages.module("other", "1.0", files={"tool/__init__.py": "mine = 1\n"})
    cli = Cli(root=tmp_path)
    with serve({"forge": Channel(packages=(packages.python(), TOOL, other)), "pypi": Index()}) as server:
        conda = {"channels": [server.url("forge")], "packages": ["other", "tool"]}
        cli.profile(server.url("pypi"), [], backend="conda", conda=conda)
        assert errors(ended(cli.run("create", "demo"), 3)) == {("file-clobbered", "tool/__init__.py")}
