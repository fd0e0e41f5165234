"""The audit of real environments through the command line: what was done behind envforge's back is seen and named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from forge.by_hand import add, made, site
from forge.by_hand import stamps as touched
from kit.check import ended, errors
from kit.cli import PYTHON, Cli
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
        steps = [{"name": "all", "install": ["dep", "six<2"]}]
        cli.profile(server.url("pypi"), steps, guards=[{"hold": "six<2"}])
        ended(cli.run("create", "demo"), 0)
        yield cli, server


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


RULES = f"""\
schema: 1
name: mine
python: "{PYTHON}"
steps:
  - {{name: base, install: [six]}}
guards:
  - {{hold: "six<2"}}
  - {{keep: [dep]}}
"""


@pytest.fixture
def by_hand(tmp_path: Path) -> tuple[Cli, Path]:
    """An environment that envforge did not build, with dep and six 1.0.0, and the profile `mine`."""
    cli = Cli(root=tmp_path)
    (cli.work / "profiles/mine.yaml").write_text(RULES)
    place = tmp_path / "v"
    made(place, SIX, DEP)
    return cli, place


def test_an_environment_of_others_is_held_against_its_records_and_nothing_is_written(by_hand: tuple[Cli, Path]) -> None:
    cli, place = by_hand
    before = touched(place)
    answer = ended(cli.run("audit", str(place), "--profile", "mine"), 0)
    assert (answer.data["environment"], answer.data["generation"], answer.data["profile"]) == (str(place), None, "mine")
    assert answer.data["checked"]["distributions"] == 2
    assert answer.data["checked"]["bytes"] > 0
    assert [text.partition(":")[0] for text in answer.data["unknown"]] == ["keep dep"]
    assert touched(place) == before
    assert not cli.home.exists()

    (site(place) / "six/__init__.py").write_text("patched = 1\n")
    (site(place) / "dep/__init__.py").unlink()
    (site(place) / "evil.pth").write_text("import os\n")
    wrong = {("file-modified", "six"), ("file-missing", "dep")}
    found = errors(ended(cli.run("audit", "../v", "--profile", "mine"), 3))
    assert found == wrong | {("file-unowned", str((site(place) / "evil.pth").relative_to(place)))}
    add(place, SEVEN)
    found = errors(ended(cli.run("audit", str(place), "--profile", "mine"), 3))
    assert {("hold-violated", "six"), ("file-missing", "dep")} <= found


def test_what_clean_environments_hold_is_no_error_in_one_of_others(by_hand: tuple[Cli, Path]) -> None:
    """numpy hashes a .pyc that compiling overwrites; a wheel lists files of another's dist-info, which nobody has."""
    cli, place = by_hand
    record = site(place) / "dep-1.0.0.dist-info/RECORD"
    digest = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    rows = [f"dep/old.pyc,{digest},0", f"other-1.0.dist-info/METADATA,{digest},0", "dep/loose.txt,,"]
    record.write_text(record.read_text() + "\n".join(rows) + "\n")
    (site(place) / "dep/old.pyc").write_bytes(b"compiled")
    ended(cli.run("audit", str(place), "--profile", "mine"), 0)


def test_a_path_needs_a_profile_and_an_environment(by_hand: tuple[Cli, Path]) -> None:
    cli, place = by_hand
    for words, code in (
        ([str(place)], "profile-not-given"),
        ([str(place / "bin"), "--profile", "mine"], "not-an-environment"),
        (["./nowhere", "--profile", "mine"], "not-an-environment"),
        ([".", "--profile", "mine"], "not-an-environment"),
    ):
        answer = ended(cli.run("audit", *words), 2)
        assert answer.document["error"]["code"] == code, str(answer)
    (place / "bin/python").unlink()
    assert errors(ended(cli.run("audit", str(place), "--profile", "mine"), 3)) == {("file-missing", "bin/python")}


def test_the_path_of_an_environment_of_this_home_means_that_environment(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("create", "demo", "--replace"), 0)
    for path, generation in ((cli.link(), 2), (cli.link().resolve(), 2), (cli.link().resolve().with_name("1"), 1)):
        answer = ended(cli.run("audit", str(path)), 0)
        assert (answer.data["environment"], answer.data["generation"]) == ("demo", generation)
        assert f"is generation {generation} of `demo`" in answer.stderr


def test_what_the_last_step_brought_is_kept_too(tmp_path: Path) -> None:
    """The guard `keep` compares with what was recorded after the last step, not with what is there now."""
    cli = Cli(root=tmp_path)
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        profile = yaml.safe_load(RULES) | {"indexes": [{"name": "pypi", "url": server.url("pypi")}]}
        profile["guards"] = [{"keep": ["six"]}]
        (cli.work / "profiles/mine.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
        ended(cli.run("create", "mine", "--name", "demo"), 0)
    add(cli.link().resolve(), SEVEN)
    found = errors(ended(cli.run("audit", "demo"), 3))
    assert found == {("package-changed", "six"), ("kept-package-changed", "six")}
