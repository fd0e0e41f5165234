"""The audit of real environments through the command line: what was done behind envforge's back is seen and named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.check import contract
from kit.cli import PYTHON, Answer, Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
DEP = Wheel(name="dep", version="1.0.0", requires=("six",))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server]]:
    """An environment `demo` with dep and six 1.0.0, and the index that also has six 2.0.0."""
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, DEP])}) as server:
        cli = Cli(root=tmp_path)
        profile: dict[str, Any] = {
            "schema": 1,
            "name": "demo",
            "python": PYTHON,
            "indexes": [{"name": "pypi", "url": server.url("pypi")}],
            "steps": [{"name": "all", "install": ["dep", "six<2"]}],
            "guards": [{"hold": "six<2"}],
        }
        (cli.work / "profiles/demo.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
        ended(cli.run("create", "demo"), 0)
        yield cli, server


def ended(answer: Answer, status: int) -> Answer:
    contract(answer)
    assert answer.exit == status, str(answer)
    return answer


def errors(answer: Answer) -> set[tuple[str, str]]:
    return {(each["id"], each["subject"]) for each in answer.document["findings"] if each["severity"] == "error"}


def stamps(cli: Cli) -> dict[str, tuple[int, int, int]]:
    root = cli.link().resolve()
    found = {path: path.lstat() for path in root.rglob("*")}
    return {str(path): (info.st_size, info.st_mtime_ns, info.st_ctime_ns) for path, info in found.items()}


@pytest.mark.parametrize("how", [[], ["--deep"]])
def test_a_fresh_environment_conforms_and_is_not_written_to(house: tuple[Cli, Server], how: list[str]) -> None:
    cli, _ = house
    subprocess.run([cli.link() / "bin/python", "-c", "import six, dep"], check=True)
    before = stamps(cli)
    for _ in range(2):
        answer = ended(cli.run("audit", "demo", *how), 0)
        assert errors(answer) == set()
        assert answer.data["checked"]["distributions"] >= 2
        assert answer.data["events"] == []
    assert stamps(cli) == before


def test_a_folder_that_vanished_is_named(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    shutil.rmtree(cli.site() / "six")
    answer = ended(cli.run("audit", "demo"), 3)
    assert ("file-missing", "six") in errors(answer)
    assert "six" in answer.data["events"][0]["distributions"]


def test_another_version_behind_one_s_back_is_named_and_violates_the_hold(house: tuple[Cli, Server]) -> None:
    cli, server = house
    pip = [
        str(cli.link() / "bin/python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--index-url",
        server.url("pypi"),
        "six==2.0.0",
    ]
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    subprocess.run(pip, check=True, env=environment)
    found = errors(ended(cli.run("audit", "demo"), 3))
    assert {("package-changed", "six"), ("hold-violated", "six")} <= found


def test_bytes_changed_in_place_are_seen_though_size_and_mtime_are_put_back(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("audit", "demo"), 0)
    file = cli.site() / "six/__init__.py"
    info, text = file.stat(), file.read_text()
    with file.open("r+") as stream:
        stream.write("#" if text[:1] != "#" else "!")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert ("file-modified", "six") in errors(ended(cli.run("audit", "demo"), 3))


def test_what_runs_by_itself_and_nobody_owns_is_named(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    (cli.site() / "evil.pth").write_text("import os\n")
    found = errors(ended(cli.run("audit", "demo"), 3))
    assert any(identity == "file-unowned" and "evil.pth" in subject for identity, subject in found)


def test_all_environments_in_one_go_and_by_another_profile(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("create", "demo", "--name", "second"), 0)
    shutil.rmtree(cli.site("second") / "six")
    answer = ended(cli.run("audit", "--all"), 3)
    assert [each["environment"] for each in answer.data["environments"]] == ["demo", "second"]
    ended(cli.run("audit", "demo"), 0)
    other = yaml.safe_load((cli.work / "profiles/demo.yaml").read_text())
    other["guards"] = [{"forbid": ["six"]}]
    (cli.work / "strict.yaml").write_text(yaml.safe_dump(other))
    assert ("package-forbidden", "six") in errors(ended(cli.run("audit", "demo", "--profile", "./strict.yaml"), 3))


def test_a_launch_knows_what_the_build_and_the_last_good_audit_left(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    start = ("run", "--strict", "demo", "python", "-c", "import six")
    assert cli.run(*start).exit == 0
    record = next(cli.site().glob("six-*.dist-info")) / "RECORD"
    text = record.read_text()
    record.write_text(text + "six/other.py,,\n")
    assert cli.run(*start).document["error"]["code"] == "changed-since-audit"
    ended(cli.run("audit", "demo"), 3)
    assert cli.run(*start).exit == 125
    record.write_text(text)
    assert cli.run(*start).exit == 125
    ended(cli.run("audit", "demo"), 0)
    assert cli.run(*start).exit == 0
    (cli.home / "records/demo/1/stamp.json").unlink()
    ended(cli.run("audit", "demo", "--profile", "demo"), 0)
    assert cli.run(*start).document["error"]["code"] == "never-audited"
    ended(cli.run("audit", "demo"), 0)
    assert cli.run(*start).exit == 0


def test_neither_or_both_of_name_and_all_is_wrong_usage(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("audit"), 2)
    ended(cli.run("audit", "demo", "--all"), 2)
    ended(cli.run("audit", "nothing"), 2)


def test_a_profile_that_moved_on_is_outdated_and_no_drift(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    assert ended(cli.run("audit", "demo"), 0).data["outdated"] == []
    file = cli.work / "profiles/demo.yaml"
    edited = yaml.safe_load(file.read_text())
    edited["steps"].append({"name": "more", "install": ["six"]})
    file.write_text(yaml.safe_dump(edited, sort_keys=False))
    answer = ended(cli.run("audit", "demo"), 0)
    assert len(answer.data["outdated"]) == 1
    assert answer.data["events"] == []


def test_what_an_interruption_left_is_told_every_time(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    (cli.site() / "~ix").mkdir()
    (cli.site() / "~ix/__init__.py").write_text("")
    for _ in range(3):
        assert ("leftover", "~ix") in errors(ended(cli.run("audit", "demo"), 3))


def test_what_was_wrong_is_told_until_it_is_right(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    file = cli.site() / "six/__init__.py"
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data + b"#")
    for _ in range(3):
        assert ("file-modified", "six") in errors(ended(cli.run("audit", "demo"), 3))
    shutil.rmtree(cli.site() / "dep")
    for _ in range(2):
        assert {("file-modified", "six"), ("file-missing", "dep")} <= errors(ended(cli.run("audit", "demo"), 3))
    file.write_bytes(data)
    assert errors(ended(cli.run("audit", "demo"), 3)) == {("file-missing", "dep")}
