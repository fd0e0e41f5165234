"""Environments of conda's that envforge did not build, or that somebody changed: seen, judged, brought back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forge import conda_house
from kit import packages
from kit.channel import PLACEHOLDER
from kit.check import ended, errors
from kit.cli import PYTHON, Answer, Cli
from kit.index import Server
from kit.rattling import make

SITE = f"lib/python{PYTHON}/site-packages"
NEWER = packages.module("demo", "1.1", files={"demo/__init__.py": "x = 2\n"}, scripts={"demo": "demo:main"})


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server]]:
    with conda_house.house(tmp_path, NEWER) as (cli, server):
        yield cli, server


def by_conda(cli: Cli, server: Server) -> Path:
    """An environment with demo 1.1 and prefixed, its records as conda itself writes them."""
    place = cli.root / "theirs"
    assert make(cli.root, server.url("forge"), "demo", "prefixed", name=place.name).error is None
    for file in place.glob("conda-meta/*.json"):
        record: dict[str, Any] = json.loads(file.read_text())
        for row in record["paths_data"]["paths"]:
            if record.get("noarch") == "python":
                row["_path"] = row["_path"].replace(f"{SITE}/", "site-packages/")
        record["url"] = record["url"].replace("://", "://me:secret@").replace("/noarch/", "/t/secret/noarch/")
        rows = [row for row in record["paths_data"]["paths"] if row["_path"] != "pyvenv.cfg"]
        record["paths_data"]["paths"] = rows
        file.write_text(json.dumps(record))
    (place / "pyvenv.cfg").unlink()
    (place / "conda-meta/history").write_text("==> 2026-11-01 10:00:00 <==\n# cmd: conda create\n")
    return place


def looked_at(cli: Cli, place: Path) -> Answer:
    return cli.run("audit", str(place), "--profile", "demo")


def test_an_audit_of_a_path_holds_every_file_to_conda_meta(house: tuple[Cli, Server]) -> None:
    cli, server = house
    place = by_conda(cli, server)
    conda_house.profile(cli, server, "demo", "prefixed", steps=[])
    checked = ended(looked_at(cli, place)).data["checked"]
    # Three packages, and the distribution that one of them brings.
    assert checked["distributions"] == 4
    assert checked["files"] == sum(1 for each in place.rglob("*") if each.is_file() or each.is_symlink())
    (place / SITE / "demo/__init__.py").write_text("x = 3\n")
    (place / "bin/demo").write_text("#!/bin/sh\n")
    (place / "share/prefixed/binary").unlink()
    text = (place / "share/prefixed/text").read_text()
    # What the package holds is not what must lie there: the prefix has its place in it.
    (place / "share/prefixed/text").write_text(text.replace(str(place), PLACEHOLDER))
    answer = ended(looked_at(cli, place), 3)
    assert errors(answer) == {("file-modified", "demo"), ("file-modified", "prefixed"), ("file-missing", "prefixed")}
    said = [each["message"] for each in answer.document["findings"]]
    assert "2 files of `demo` 1.1 are not what conda-meta says (`bin/demo` and others)" in said
    assert "`share/prefixed/binary` of `prefixed` 1.0 is gone" in said


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["conda", "venv"])
def test_what_was_adopted_is_repaired_from_its_channel(house: tuple[Cli, Server], backend: str) -> None:
    cli, server = house
    place = by_conda(cli, server)
    if backend == "conda":
        conda_house.profile(cli, server, "demo", "prefixed", steps=[])
    else:
        cli.profile(server.url("pypi"), [])
    answer = ended(cli.run("adopt", str(place), "--profile", "demo"))
    assert (answer.data["backend"], answer.data["checked"]["distributions"]) == ("conda", 4)
    assert not (cli.user / ".conda").exists()
    for path in ("share/prefixed/text", f"{SITE}/demo/__init__.py"):
        (place / path).write_text("other\n")
    (place / "bin/demo").unlink()
    [record] = place.glob("conda-meta/demo-*.json")
    record.unlink()
    assert errors(ended(cli.run("audit", "demo"), 3)) == {("package-missing", "demo"), ("file-modified", "prefixed")}
    answer = ended(cli.run("repair", "demo"))
    assert {each["subject"] for each in answer.data["actions"]} == {"demo", "prefixed"}
    assert ended(cli.run("audit", "demo", "--deep")).data["events"] == []
    assert str(place) in (place / "share/prefixed/text").read_text()


def test_a_file_that_is_no_record_is_told(house: tuple[Cli, Server]) -> None:
    cli, server = house
    place = by_conda(cli, server)
    conda_house.profile(cli, server, "demo", "prefixed", steps=[])
    (place / "conda-meta/half-1.0-0.json").write_text('{"name": "half"}')
    answer = ended(looked_at(cli, place), 3)
    assert errors(answer) == {("record-missing", "half")}
    assert "`conda-meta/half-1.0-0.json` is no record of a conda package" in answer.text


def test_credentials_of_a_channel_stay_out_of_the_records(house: tuple[Cli, Server]) -> None:
    cli, server = house
    place = by_conda(cli, server)
    conda_house.profile(cli, server, "demo", "prefixed", steps=[])
    ended(cli.run("adopt", str(place), "--profile", "demo"))
    snapshot = (cli.home / "records/demo/1/snapshots/1.json").read_text()
    assert "prefixed" in snapshot
    assert "secret" not in snapshot


@pytest.mark.slow
def test_what_conda_installed_behind_its_back_is_told_accepted_and_kept(house: tuple[Cli, Server]) -> None:
    cli, server = house
    conda_house.profile(cli, server, "demo ==1.0", "prefixed")
    ended(cli.run("create", "demo"))
    prefix = cli.link().resolve()
    name = str(prefix.relative_to(cli.root))
    assert make(cli.root, server.url("forge"), "demo ==1.1", "prefixed", name=name).error is None
    assert errors(ended(cli.run("audit", "demo"), 3)) == {("package-changed", "demo")}
    answer = ended(cli.run("accept", "demo"))
    assert {(each["name"], each["from"], each["to"]) for each in answer.data["changes"]} == {("demo", "1.0", "1.1")}
    assert answer.data["not_reproducible"]["distributions"] == ["demo 1.1"] * 2
    assert "conda:" not in answer.stdout + answer.stderr
    shown = ended(cli.run("show", "demo")).data
    # Python, demo and prefixed of conda, the distribution demo, and six of pip.
    assert (shown["distributions"], shown["backend"]) == (5, "conda")
    [row] = ended(cli.run("list", "--size")).data["environments"]
    assert row["verdict"] == "conforms"
    (prefix / SITE / "demo/__init__.py").write_text("x = 3\n")
    ended(cli.run("repair", "demo"))
    assert (prefix / SITE / "demo/__init__.py").read_text() == "x = 2\n"
    lock = (cli.home / "records/demo/1/snapshots").glob("pylock.*.toml")
    assert not [file for file in lock if "conda:" in file.read_text()]
    assert hashlib.sha256(b"x = 2\n").hexdigest() in next(prefix.glob("conda-meta/demo-1.1-*.json")).read_text()
