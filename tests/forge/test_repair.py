"""The repair of real environments through the command line: least change, nothing out of a poisoned cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.check import ended, errors
from kit.cli import PYTHON, Answer, Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

SIX = Wheel(name="six", version="1.0.0", files={"six/extra.py": "extra = 1\n"})
SEVEN = Wheel(name="six", version="2.0.0", files={"six/newer.py": "newer = 1\n"})
DEP = Wheel(name="dep", version="1.0.0", requires=("six",), scripts={"dep-tool": "dep:main"})
STRAY = Wheel(name="stray", version="1.0.0", files={"dep/intruder.py": ""})


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server]]:
    """An environment `demo` with dep and six 1.0.0, and an index that also has six 2.0.0 and stray."""
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, DEP, STRAY])}) as server:
        cli = Cli(root=tmp_path)
        steps = [{"name": "all", "install": ["dep", "six<2"]}]
        cli.profile(server.url("pypi"), steps, guards=[{"hold": "six<2"}])
        ended(cli.run("create", "demo"), 0)
        yield cli, server


def repaired(cli: Cli, *arguments: str) -> Answer:
    """Repair `demo` and prove with every file hashed that it is as recorded."""
    answer = ended(cli.run(*arguments, "repair", "demo"), 0)
    assert ended(cli.run("audit", "demo", "--deep"), 0).data["events"] == []
    return answer


def actions(answer: Answer) -> set[tuple[str, str]]:
    return {(each["action"], each["subject"]) for each in answer.data["actions"]}


def install(cli: Cli, server: Server, *requirements: str) -> None:
    """By the environment's own pip, behind envforge's back."""
    pip = [str(cli.link() / "bin/python"), "-m", "pip", "install", "-q", "--no-deps"]
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    subprocess.run([*pip, "--index-url", server.url("pypi"), *requirements], check=True, env=environment)


def inodes(cli: Cli) -> dict[str, int]:
    root = cli.link().resolve()
    return {
        str(path.relative_to(root)): path.lstat().st_ino for path in root.rglob("*") if "__pycache__" not in path.parts
    }


def test_where_nothing_drifted_nothing_is_done(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    before = inodes(cli)
    assert repaired(cli).data["actions"] == []
    assert inodes(cli) == before


def test_a_vanished_package_and_a_vanished_distribution_come_back(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    before = inodes(cli)
    shutil.rmtree(cli.site() / "six")
    shutil.rmtree(next(cli.site().glob("dep-*.dist-info")))
    (cli.link() / "bin/dep-tool").unlink()
    assert actions(repaired(cli)) == {("restore", "six"), ("reinstall", "dep")}
    after = inodes(cli)
    assert after.keys() == before.keys()
    # What was not gone was not touched.
    assert (
        before[f"lib/python{PYTHON}/site-packages/dep/__init__.py"]
        == after[f"lib/python{PYTHON}/site-packages/dep/__init__.py"]
    )
    assert subprocess.run([cli.link() / "bin/dep-tool"], check=False).returncode in {0, 1}


def test_a_dry_run_says_the_same_and_changes_nothing(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    shutil.rmtree(cli.site() / "six")
    before = inodes(cli)
    answer = ended(cli.run("repair", "demo", "--dry-run"), 3)
    assert answer.data["dry_run"] is True
    assert inodes(cli) == before
    done = repaired(cli)
    assert done.data["actions"] == answer.data["actions"]


def test_another_version_goes_and_the_recorded_one_comes_back(house: tuple[Cli, Server]) -> None:
    cli, server = house
    install(cli, server, "six==2.0.0", "stray")
    answer = repaired(cli)
    assert actions(answer) == {("reinstall", "six"), ("remove", "stray")}
    assert cli.installed() == {"dep": "1.0.0", "six": "1.0.0"}
    assert not (cli.site() / "six/newer.py").exists()
    assert not (cli.site() / "dep/intruder.py").exists()
    assert not (cli.site() / "stray").exists()


@pytest.mark.parametrize("put_back", [False, True])
def test_a_poisoned_cache_is_not_believed(house: tuple[Cli, Server], put_back: bool) -> None:
    cli, _ = house
    ended(cli.run("audit", "demo"), 0)
    file = cli.site() / "six/extra.py"
    facts = file.stat()
    with file.open("r+") as stream:
        stream.write("wrong")
    if put_back:
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    if file.stat().st_nlink == 1:
        pytest.skip("this file system shares no files with the cache")
    answer = repaired(cli)
    assert answer.data["evicted"] == ["six"]
    assert file.read_text() == "extra = 1\n"
    ended(cli.run("create", "demo", "--name", "other"), 0)
    assert (cli.site("other") / "six/extra.py").read_text() == "extra = 1\n"


def test_who_shares_a_changed_file_is_named(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("create", "demo", "--name", "other"), 0)
    file = cli.site() / "six/extra.py"
    if file.stat().st_nlink == 1:
        pytest.skip("this file system shares no files with the cache")
    with file.open("a") as stream:
        stream.write("# more\n")
    assert repaired(cli).data["shared"] == ["other/1"]
    assert ("restore", "six") in actions(ended(cli.run("repair", "other"), 0))


def test_bytecode_of_a_changed_source_is_not_believed_either(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    file = cli.site() / "six/extra.py"
    facts, data = file.stat(), file.read_bytes()
    file.unlink()
    file.write_bytes(data.replace(b"1", b"2"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    shown = [str(cli.link() / "bin/python"), "-c", "import six.extra; print(six.extra.extra)"]
    assert subprocess.run(shown, check=True, capture_output=True, text=True).stdout == "2\n"
    repaired(cli)
    assert subprocess.run(shown, check=True, capture_output=True, text=True).stdout == "1\n"


def test_what_an_installer_left_goes_and_code_that_nobody_owns_is_moved_aside(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    (cli.site() / "~ix-1.0.0.dist-info").mkdir()
    (cli.site() / "~ix-1.0.0.dist-info/METADATA").write_text("Name: six\nVersion: 1.0.0\n")
    (cli.site() / "half-1.0.dist-info").mkdir()
    (cli.site() / "half-1.0.dist-info/METADATA").write_text("Name: half\nVersion: 1.0\n")
    (cli.site() / "evil.pth").write_text("import os\n")
    answer = repaired(cli)
    evil = f"lib/python{PYTHON}/site-packages/evil.pth"
    assert ("set-aside", evil) in actions(answer)
    assert (Path(answer.data["aside"]) / evil).read_text() == "import os\n"
    assert not list(cli.site().glob("~*"))
    assert not list(cli.site().glob("half*"))


def test_what_no_wheel_holds_comes_from_the_records(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    link = cli.link()
    pyvenv = (link / "pyvenv.cfg").read_text()
    (link / "pyvenv.cfg").write_text(
        pyvenv.replace("include-system-site-packages = false", "include-system-site-packages = true")
    )
    (link / "bin/activate").unlink()
    for python in link.glob("bin/python*"):
        python.unlink()
    shutil.rmtree(cli.site() / "dep")
    repaired(cli)
    assert (link / "pyvenv.cfg").read_text() == pyvenv
    assert subprocess.run([link / "bin/python", "-c", "import dep"], check=False).returncode == 0


def test_offline_from_the_cache_and_what_it_lacks_is_named(house: tuple[Cli, Server]) -> None:
    cli, server = house
    shutil.rmtree(cli.site() / "six")
    repaired(cli, "--offline")
    shutil.rmtree(cli.site() / "six")
    shutil.rmtree(cli.site() / "dep")
    uv = Path(sys.executable).with_name("uv")
    cache = cli.home / "cache/uv"
    subprocess.run([uv, "cache", "clean", "--cache-dir", cache, "six"], check=True, capture_output=True)
    answer = ended(cli.run("--offline", "repair", "demo"), 3)
    assert [each["subject"] for each in answer.data["lost"]] == ["six"]
    assert (cli.site() / "dep/__init__.py").exists()
    assert actions(repaired(cli)) == {("restore", "six")}
    del server


def test_an_intruder_stays_where_the_recorded_one_cannot_be_had(house: tuple[Cli, Server]) -> None:
    cli, server = house
    install(cli, server, "six==2.0.0")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "cache", "clean", "--cache-dir", cli.home / "cache/uv", "six"], check=True, capture_output=True)
    answer = ended(cli.run("--offline", "repair", "demo"), 3)
    assert answer.data["actions"] == []
    assert cli.installed()["six"] == "2.0.0"
    assert (cli.site() / "six/__init__.py").exists()
    repaired(cli)


def test_a_process_that_uses_it_keeps_it_from_being_changed(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    shutil.rmtree(cli.site() / "six")
    child = subprocess.Popen([cli.link().resolve() / "bin/python", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        answer = ended(cli.run("repair", "demo"), 1)
        assert answer.document["error"]["code"] == "in-use"
        assert str(child.pid) in answer.text
        assert not (cli.site() / "six").exists()
        ended(cli.run("repair", "demo", "--in-use"), 0)
    finally:
        child.communicate()


def test_a_symlink_in_the_way_is_not_followed(house: tuple[Cli, Server], tmp_path: Path) -> None:
    cli, _ = house
    elsewhere = tmp_path / "elsewhere"
    shutil.move(cli.site() / "six", elsewhere)
    (cli.site() / "six").symlink_to(elsewhere)
    (elsewhere / "extra.py").write_text("mine = 1\n")
    repaired(cli)
    assert not (cli.site() / "six").is_symlink()
    assert (elsewhere / "extra.py").read_text() == "mine = 1\n"
    assert (cli.site() / "six/extra.py").read_text() == "extra = 1\n"


def test_a_folder_in_the_place_of_a_file_and_a_file_in_the_place_of_a_folder(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    (cli.site() / "six/extra.py").unlink()
    (cli.site() / "six/extra.py").mkdir()
    (cli.site() / "six/extra.py/mine.txt").write_text("mine")
    shutil.rmtree(cli.site() / "dep")
    (cli.site() / "dep").write_text("mine too")
    answer = repaired(cli)
    aside = Path(answer.data["aside"])
    assert {path.read_text() for path in aside.rglob("*") if path.is_file()} == {"mine", "mine too"}


def test_a_pipe_in_the_place_of_a_module_is_drift(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    (cli.site() / "six/extra.py").unlink()
    os.mkfifo(cli.site() / "six/extra.py")
    assert errors(ended(cli.run("audit", "demo"), 3)) == {("file-modified", "six")}
    assert actions(repaired(cli)) == {("restore", "six")}


def test_a_renamed_dist_info_goes_and_the_recorded_one_comes_back(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    before = inodes(cli).keys()
    info = cli.site() / "dep-1.0.0.dist-info"
    info.rename(cli.site() / "zzz-1.0.0.dist-info")
    repaired(cli)
    assert inodes(cli).keys() == before
    # A copy under another version is what counts as installed; still the recorded one is not the debris.
    shutil.copytree(info, cli.site() / "dep-2.0.0.dist-info")
    metadata = cli.site() / "dep-2.0.0.dist-info/METADATA"
    text = metadata.read_text()
    metadata.unlink()
    metadata.write_text(text.replace("Version: 1.0.0", "Version: 2.0.0"))
    repaired(cli)
    assert inodes(cli).keys() == before


def test_code_that_slips_in_before_a_recorded_module_is_moved_aside(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    before = inodes(cli).keys()
    (cli.site() / "six/extra").mkdir()
    (cli.site() / "six/extra/__init__.py").write_text("extra = 2\n")
    place = f"lib/python{PYTHON}/site-packages/six/extra/__init__.py"
    for depth in ([], [], ["--deep"]):
        assert errors(ended(cli.run("audit", "demo", *depth), 3)) == {("file-unowned", place)}
    ended(cli.run("accept", "demo"), 3)
    assert actions(repaired(cli)) == {("set-aside", place)}
    assert inodes(cli).keys() == before


@pytest.mark.slow
def test_what_was_accepted_comes_back_whole_with_nothing_evicted(house: tuple[Cli, Server]) -> None:
    cli, server = house
    install(cli, server, "stray")  # compiled by pip, as no repair would write its RECORD
    ended(cli.run("accept", "demo"), 0)
    before = inodes(cli).keys()
    shutil.rmtree(cli.site() / "stray")
    shutil.rmtree(cli.site() / "stray-1.0.0.dist-info")
    answer = repaired(cli)
    assert (answer.data["lost"], answer.data["evicted"]) == ([], [])
    assert inodes(cli).keys() == before
    server.put("pypi", Wheel(name="stray", version="1.0.0", files={"stray/__init__.py": "other = 1\n"}))
    shutil.rmtree(cli.home / "cache")
    shutil.rmtree(cli.site() / "stray")
    answer = ended(cli.run("repair", "demo"), 3)
    assert ([each["subject"] for each in answer.data["lost"]], answer.data["evicted"]) == (["stray"], [])
    assert "`envforge rebuild demo`" in answer.document["findings"][0]["remedy"]


@pytest.mark.slow
def test_of_what_was_accepted_no_half_comes_beside_an_intruder(house: tuple[Cli, Server]) -> None:
    cli, server = house
    install(cli, server, "stray")
    ended(cli.run("accept", "demo"), 0)
    server.put("pypi", Wheel(name="stray", version="2.0.0"))
    install(cli, server, "stray==2.0.0")
    server.withdraw("pypi", "stray-1*")
    shutil.rmtree(cli.home / "cache")
    before = inodes(cli)
    answer = ended(cli.run("repair", "demo"), 3)
    assert [each["subject"] for each in answer.data["lost"]] == ["stray"]
    assert answer.data["actions"] == []
    assert inodes(cli) == before


def test_kept_bytes_that_are_damaged_come_from_the_wheel_or_are_told(tmp_path: Path) -> None:
    wheels = [Wheel(name=name, version="1.0.0", files={"both/x.py": f"{name} = 1\n"}) for name in ("one", "two")]
    with serve({"pypi": Index(artefacts=wheels)}) as server:
        cli = Cli(root=tmp_path)
        steps = [{"name": name, "install": [name]} for name in ("one", "two")]
        cli.profile(server.url("pypi"), steps, ignore=["file-clobbered"])
        ended(cli.run("create", "demo"), 0)
        for kept in (cli.home / "records/demo/1/contents").iterdir():
            kept.write_text("damaged")
        shutil.rmtree(cli.site() / "both")
        assert actions(repaired(cli)) == {("restore", "one")}
        assert (cli.site() / "both/x.py").read_text() == "two = 1\n"
        (cli.link() / "bin/activate").unlink()
        answer = ended(cli.run("repair", "demo"), 3)
        assert (actions(answer), [each["subject"] for each in answer.data["lost"]]) == (set(), ["bin/activate"])


@pytest.mark.parametrize("number", [0, 1])
def test_of_a_shared_path_only_the_damaged_copies_are_evicted(tmp_path: Path, number: int) -> None:
    same = {"both/same.py": "same = 1\n"}
    wheels = [Wheel(name="one", version="1.0.0", files=same), Wheel(name="two", version="1.0.0", files=same)]
    with serve({"pypi": Index(artefacts=wheels)}) as server:
        cli = Cli(root=tmp_path)
        cli.profile(server.url("pypi"), [{"name": "all", "install": ["one", "two"]}])
        ended(cli.run("create", "demo"), 0)
        copies = sorted((cli.home / "cache/uv").glob("archive-v*/*/both/same.py"))
        owner = next(copies[number].parents[1].glob("*.dist-info")).name.partition("-")[0]
        copies[number].write_text("evil = 1\n")
        (cli.site() / "both/same.py").unlink()
        (cli.site() / "both/same.py").write_text("evil = 1\n")
        assert repaired(cli).data["evicted"] == [owner]
        assert (cli.site() / "both/same.py").read_text() == "same = 1\n"


def test_a_home_that_was_moved_is_told_and_rebuilt(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    elsewhere = cli.root / "moved"
    cli.home.rename(elsewhere)
    cli.home.symlink_to(elsewhere)
    ended(cli.run("audit", "demo"), 0)  # the scripts still find their Python
    cli.home.unlink()
    moved = replace(cli, variables={"ENVFORGE_HOME": str(elsewhere)})
    answer = ended(moved.run("audit", "demo"), 3)
    assert errors(answer) == {("file-modified", "bin")}
    assert "`envforge rebuild demo`" in answer.document["findings"][0]["remedy"]
    (elsewhere / "envs/demo/bin/dep-tool").unlink()
    assert ended(moved.run("repair", "demo"), 3).data["evicted"] == []
    ended(moved.run("rebuild", "demo"), 0)
    ended(moved.run("audit", "demo"), 0)


def test_a_sealed_environment_is_opened_for_it_and_closed_again(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("seal", "demo"), 0)
    (cli.site() / "six").chmod(0o755)
    (cli.site() / "six/extra.py").unlink()
    repaired(cli)
    assert (cli.site() / "six").stat().st_mode & 0o222 == 0
    assert (cli.site() / "six/extra.py").stat().st_mode & 0o222 == 0


@pytest.mark.slow
def test_what_pip_built_is_repaired_as_pip_builds(house: tuple[Cli, Server]) -> None:
    cli, _ = house
    ended(cli.run("create", "demo", "--replace", "--engine", "pip"), 0)
    shutil.rmtree(cli.site() / "six")
    shutil.rmtree(next(cli.site().glob("dep-*.dist-info")))
    shutil.rmtree(cli.site() / "pip")
    assert actions(repaired(cli)) == {("restore", "six"), ("reinstall", "dep"), ("restore", "pip")}
