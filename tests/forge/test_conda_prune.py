"""Of conda packages, too, what no snapshot of a generation that stays names goes, and no more."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forge import conda_house
from kit import packages
from kit.check import ended
from kit.cli import Cli
from kit.index import Server

BIG = {"demo/data.txt": "x" * 9000}
NEWER = packages.module("demo", "1.1", files=BIG)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server]]:
    with conda_house.house(tmp_path, NEWER, variables={"ENVFORGE_KEEP_GENERATIONS": "1"}) as (cli, server):
        yield cli, server


def cached(cli: Cli) -> set[str]:
    return {place.name for place in (cli.home / "cache/conda/pkgs").iterdir() if place.is_dir()}


def taken(root: Path) -> int:
    """Bytes of all files below, each once."""
    every = map(os.lstat, root.rglob("*"))
    files = {(each.st_dev, each.st_ino): each.st_size for each in every if not stat.S_ISDIR(each.st_mode)}
    return sum(files.values())


def pruned(cli: Cli) -> dict[str, Any]:
    """What a prune did; a dry run before it says the same, and the disk agrees."""
    said = ended(cli.run("prune", "--dry-run")).data
    before = taken(cli.root)
    done = ended(cli.run("prune")).data
    assert {**said, "dry_run": False} == done
    assert before - taken(cli.root) == done["bytes"]
    return done


def test_what_was_superseded_goes_and_what_stays_can_be_built_offline(house: tuple[Cli, Server]) -> None:
    cli, server = house
    conda_house.profile(cli, server, "demo ==1.1", "prefixed")
    ended(cli.run("create", "demo"))
    conda_house.profile(cli, server, "demo ==1.0", "prefixed")
    ended(cli.run("update", "demo"))
    done = pruned(cli)
    gone = {each["what"]: each["bytes"] for each in done["removed"]}
    assert gone.keys() == {"demo==1.1"}
    # Nothing else links to them: their generation went when the new one took its place.
    assert gone["demo==1.1"] > 9000
    assert [each["distributions"] for each in done["unrestorable"]] == [["demo==1.1"]]
    assert {each.split("-")[0] for each in cached(cli)} == {"python", "demo", "prefixed"}
    assert "demo-1.1-pyh0_0" not in cached(cli)
    ended(cli.run("--offline", "rebuild", "demo"))
    assert pruned(cli)["removed"] == []


@pytest.mark.slow
def test_files_that_an_environment_links_to_free_nothing(house: tuple[Cli, Server]) -> None:
    cli, server = house
    conda_house.profile(cli, server, "demo ==1.1")
    ended(cli.run("create", "demo"))
    theirs = cli.root / "theirs"
    for path in cli.link().resolve().rglob("data.txt"):
        theirs.hardlink_to(path)
    ended(cli.run("remove", "demo"))
    gone = {each["what"]: each["bytes"] for each in pruned(cli)["removed"]}
    assert gone.keys() == {"python", "demo", "six", "lists of channels"}
    assert gone["demo"] < 9000
    assert cached(cli) == set()
    assert not list((cli.home / "cache/conda/repodata").iterdir())


@pytest.mark.slow
def test_half_a_package_goes_and_in_doubt_one_stays(house: tuple[Cli, Server]) -> None:
    cli, server = house
    conda_house.profile(cli, server, "prefixed")
    ended(cli.run("create", "demo"))
    half = cli.home / "cache/conda/pkgs/half-1.0-0"
    (half / "lib").mkdir(parents=True)
    (half / "lib/data").write_text("x" * 100)
    half.with_name("half-1.0-0.lock").write_text("")
    # Of which archive it came, nothing says any more.
    half.with_name("prefixed-1.0-0.lock").write_text("")
    removed = pruned(cli)["removed"]
    assert [(each["what"], each["bytes"]) for each in removed] == [("leftovers of builds", 100)]
    assert "prefixed-1.0-0" in cached(cli)
