"""Records in conda-meta that are none, or one too many: named by an audit, and put right by a repair."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forge import conda_house
from kit.check import ended, errors
from kit.cli import Cli

GONE = ("package-missing", "demo")
BROKEN = {GONE, ("record-missing", "demo")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with conda_house.house(tmp_path_factory.mktemp("records")) as (cli, server):
        conda_house.profile(cli, server, "demo", steps=[])
        ended(cli.run("create", "demo"))
        yield cli


def linked(file: Path, victim: Path) -> None:
    file.unlink()
    file.symlink_to(victim)


def folder(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()
    shutil.copy(__file__, file)


def piped(file: Path, _: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def nested(file: Path, _: Path) -> None:
    file.write_text("[" * 200_000)


def changed(**more: Any) -> Callable[[Path, Path], None]:
    def put(file: Path, _: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text()), **more}))

    return put


def second(name: str, version: str) -> Callable[[Path, Path], None]:
    """The record once more, under another name of a file."""

    def put(file: Path, _: Path) -> None:
        file.with_name(name).write_text(json.dumps({**json.loads(file.read_text()), "version": version}))

    return put


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (linked, BROKEN),
        (folder, BROKEN),
        (piped, BROKEN),
        (nested, BROKEN),
        (changed(paths_data={"paths": [{"_path": "a\0b", "path_type": "hardlink"}]}), {("package-changed", "demo")}),
        (changed(name="de\ud83dmo"), {GONE, ("package-extra", "de\ud83dmo")}),
        (second("demo-0.9-pyh0_0.json", "0.9"), {("leftover", "demo")}),
        (second("copy.json", "1.0"), {("leftover", "demo")}),
        (second("demo-9.0-pyh0_0.json", "9.0"), {("leftover", "demo"), ("package-changed", "demo")}),
    ],
    ids=["link", "folder", "pipe", "nested", "nul", "surrogate", "older", "copy", "newer"],
)
def test_a_record_that_is_none_or_one_too_many(
    made: Cli, tmp_path: Path, damage: Callable[[Path, Path], None], found: set[tuple[str, str]]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("stays\n")
    prefix = made.link().resolve()
    records = {file.name for file in prefix.glob("conda-meta/*.json")}
    [file] = prefix.glob("conda-meta/demo-*.json")
    damage(file, victim)
    assert errors(ended(made.run("audit", "demo"), 3)) == found
    ended(made.run("repair", "demo"))
    ended(made.run("audit", "demo", "--deep"))
    assert {each.name for each in prefix.glob("conda-meta/*.json")} == records
    assert json.loads(file.read_text())["name"] == "demo"
    assert victim.read_text() == "stays\n"
