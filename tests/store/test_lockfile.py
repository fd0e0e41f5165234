"""A lock that leaves its home: others read it as PEP 751, and what a hand did to it is named by its place."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock

from envforge.model.errors import UsageError
from envforge.model.lock import LockedStep, LockFile
from envforge.model.state import Distribution, Origin
from envforge.store import lockfile, pylock

PATH = Path("demo.pylock.toml")


def wheel(name: str, version: str, digit: str, **fields: object) -> Distribution:
    whole: dict[str, object] = {
        "name": name,
        "version": version,
        "index": "pypi",
        "file": f"{name}-{version}-py3-none-any.whl",
        "url": f"https://u:p@files.example/{name}-{version}-py3-none-any.whl?token=1",
        "sha256": digit * 64,
        "size": 7,
    }
    return Distribution(**{**whole, **fields})  # type: ignore[arg-type]


OLD, NEW = wheel("six", "1.0", "a"), wheel("six", "2.0", "b")
OWN = wheel("own", "1.0", "c", index=None, url=None, origin=Origin(kind="path", url="file:///home/me/own", sha256="d"))
PIP = Distribution(name="pip", version="24.0", file="pip.whl", sha256="e" * 64, origin=Origin(kind="python"))
MADE = Distribution(name="made", version="0.1")
LOCK = LockFile(
    name="demo",
    text='schema: 1\nname: demo\nsummary: "\\ and """ and\ttab"\n',
    python="3.11.7",
    steps=(
        LockedStep(name="first", state={"six": OLD, "pip": PIP}),
        LockedStep(name="last", state={"six": NEW, "pip": PIP, "own": OWN, "made": MADE}),
    ),
    substitutes={"torch": "pypi"},
)


def packed(name: str, version: str, digit: str) -> Distribution:
    """A conda package with what its channel says of it."""
    file = f"{name}-{version}-h_0.conda"
    said = {
        "name": name, "version": version, "build": "h_0", "fn": file, "url": f"https://c.example/linux-64/{file}",
        "channel": "https://c.example/", "subdir": "linux-64", "depends": ["python"], "sha256": digit * 64, "size": 9,
    }  # fmt: skip
    return Distribution(
        name=f"conda:{name}", version=version, build="h_0", index="forge", file=file, url=str(said["url"]),
        sha256=digit * 64, size=9, installer="conda", repodata=json.dumps(said, sort_keys=True),
    )  # fmt: skip


TOOL, LATER = packed("tool", "1.0", "1"), packed("tool", "2.0", "2")
BROUGHT = Distribution(name="hello", version="1", installer="conda", origin=Origin(kind="conda", package="hello-py"))
CONDA = LockFile(
    name="demo", text="schema: 1\n", python="3.11.7", base={"conda:tool": TOOL, "hello": BROUGHT},
    steps=(LockedStep(name="one", state={"conda:tool": LATER, "six": NEW}),),
)  # fmt: skip
CONDA_TEXT = lockfile.dump(CONDA, indexes={})
INDEXES = {"pypi": "https://u:p@index.example/simple"}
TEXT = lockfile.dump(LOCK, indexes=INDEXES)


def test_any_reader_of_pep_751_takes_it_for_a_lock_of_the_end() -> None:
    found = Pylock.from_dict(tomllib.loads(TEXT))
    found.validate()
    assert {str(each.name): str(each.version) for each in found.packages} == {"own": "1.0", "six": "2.0"}
    assert str(found.requires_python) == "==3.11.*"


def test_it_reads_as_what_was_written_but_for_what_only_this_machine_knows() -> None:
    found = lockfile.load(TEXT, PATH)
    assert (found.name, found.text, found.python, found.substitutes) == (
        LOCK.name, LOCK.text, LOCK.python, LOCK.substitutes,
    )  # fmt: skip
    first, last = found.steps
    assert first.state == {
        "six": replace(OLD, url="https://files.example/six-1.0-py3-none-any.whl"),
        "pip": Distribution(name="pip", version="24.0", origin=Origin(kind="python")),
    }
    assert last.state["own"] == replace(OWN, origin=Origin(kind="path", sha256="d"))
    assert last.state["made"] == MADE


def test_no_password_and_no_path_of_this_machine() -> None:
    assert "u:p" not in TEXT
    assert "token" not in TEXT
    assert "/home/me" not in TEXT


def test_written_again_it_is_the_same() -> None:
    again = lockfile.dump(lockfile.load(TEXT, PATH), indexes={"pypi": "https://index.example/simple"})
    assert again == TEXT


def test_a_profile_without_steps() -> None:
    empty = replace(LOCK, steps=())
    text = lockfile.dump(empty, indexes={})
    Pylock.from_dict(tomllib.loads(text)).validate()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_text_of_several_lines_is_read_as_it_was(text: str) -> None:
    assert tomllib.loads(f"x = {pylock.block(text)}\n")["x"] == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[tool.envforge]", "[tool.envforge", "no TOML"),
        ("a" * 64, "A" * 64, "replaced[0].wheels[0].hashes.sha256: 64 digits"),
        ("b" * 64, "b" * 63, "packages[1].wheels[0].hashes.sha256: 64 digits"),
        ('sha256 = "' + "b" * 64 + '"}}]', 'sha256 = "' + "f" * 64 + '"}}]', "no package of the lock is `six` 2.0"),
        ("size = 7", 'size = "7"', "wheels[0].size: a number"),
        ("size = 7", "size = true", "wheels[0].size: a number"),
        ('name = "last"\n', "", "tool.envforge.steps[1].name: a text"),
        ('name = "last"\n', "name = 3\n", "tool.envforge.steps[1].name: a text"),
        ("holds = [", "held = [", "tool.envforge.steps[0].holds: a list of tables"),
        ('python = "3.11.7"', 'python = "three"', "tool.envforge.python: `three` is no version"),
        ('python = "3.11.7"', "python = 3.11", "tool.envforge.python: a text"),
        ("schema = 1", 'schema = "1"', "tool.envforge.schema: 1 was expected"),
        ("six-2.0-py3", "sex-2.0-py3", "is no wheel of `six` 2.0"),
        ("six-2.0-py3", "six-2.1-py3", "is no wheel of `six` 2.0"),
        ('name = "six-2.0-py3', 'name = "../six-2.0-py3', "is the name of no wheel"),
        ('version = "2.0"', 'version = "2.0!"', "packages[1]"),
        ('version = "2.0"', "version = 2.0", "packages[1].version: a text"),
        ("substitutes = {", "substitutes = [", "no TOML"),
        ('substitutes = {torch = "pypi"}', "substitutes = 3", "tool.envforge.substitutes"),
        ("[[packages]]", "[[package]]", "packages: a list of tables"),
        ("[[tool.envforge.steps]]", "[[tool.envforge.step]]", "envforge did not write it"),
        ("[tool.envforge]", "[tool.envforger]", "tool.envforge.profile: a text"),
        ('origin = {kind = "path"', 'origin = {kind = ["path"]', "origin: a table of texts"),
        ('lock-version = "1.0"', "lock-version = 1.0", "lock-version: a text"),
    ],
)
def test_what_a_hand_did_is_named_by_its_place(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(UsageError) as caught:
        lockfile.load(TEXT.replace(old, new), PATH)
    assert caught.value.code == "invalid-lock"
    assert said in (caught.value.cause or "")


def test_a_row_twice_and_a_package_that_no_step_holds() -> None:
    row = '  {name = "made", version = "0.1"},\n'
    with pytest.raises(UsageError, match="no lock") as caught:
        lockfile.load(TEXT.replace(row, row * 2), PATH)
    assert "`made` stands there twice" in (caught.value.cause or "")
    row = f'  {{name = "own", version = "1.0", sha256 = "{"c" * 64}"}},\n'
    assert row in TEXT
    with pytest.raises(UsageError, match="no lock") as caught:
        lockfile.load(TEXT.replace(row, ""), PATH)
    assert caught.value.cause == "packages: `own` 1.0 with this sha256 is not what the last step leaves"


def test_conda_packages_are_carried_with_what_their_channel_says_of_them() -> None:
    found = lockfile.load(CONDA_TEXT, PATH)
    assert (found.base, found.final["conda:tool"]) == (CONDA.base, LATER)
    assert lockfile.dump(found, indexes={}) == CONDA_TEXT
    assert "unlocked" not in CONDA_TEXT
    read = Pylock.from_dict(tomllib.loads(CONDA_TEXT))
    assert [str(each.name) for each in read.packages] == ["six"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f'sha256 = "{"1" * 64}"\nsize', f'sha256 = "{"3" * 64}"\nsize', "conda[0].sha256: its `repodata` has another"),
        (f'sha256 = "{"1" * 64}"}}', f'sha256 = "{"3" * 64}"}}', "no package of the lock is `tool` 1.0"),
        ('file = "tool-1.0', 'file = "../../tool-1.0', "conda[0].file: `../../tool-1.0-h_0.conda` is no package of"),
        ('name = "tool"', 'name = "../tool"', "conda[0].file: "),
        ('url = "https://c', 'url = "https://d', "conda[0].url: its `repodata` has another `url`"),
        ("size = 9", "size = 8", "conda[0].size: its `repodata` has another"),
        ("size = 9\n", "", "conda[0].size: its `repodata` has another"),
        ('repodata = "{', 'repodata = "', "conda[0].repodata: it is no JSON"),
        ('repodata = "{', 'repodata = "[{', "conda[0].repodata: it is no JSON"),
        ('\\"depends\\": [\\"python\\"]', '\\"depends\\": 3', "what a channel says of a package was expected"),
        ('\\"subdir\\"', '\\"dir\\"', "what a channel says of a package was expected"),
        ('\\"size\\": 9', '\\"size\\": true', "what a channel says of a package was expected"),
        ('build = "h_0"\n', "", "conda[0].build: a text"),
        ('channel = "forge"', "channel = 3", "conda[0].channel: a text"),
        ('conda = "tool", version = "1.0"', 'conda = "tool", version = "1.1"', "base[0]: no package of the lock is"),
        ('conda = "tool", version = "1.0"', 'name = "conda:tool", version = "1.0"', "is the name of no distribution"),
        (', package = "hello-py"', "", "base[1].package: a text"),
        ('name = "hello"', 'conda = "hello"', "tool.envforge.base[1]"),
        ('from = "conda"', 'from = ["conda"]', "tool.envforge.base"),
        ("base = [\n", "bases = [\n", "neither the base nor a step holds `tool` 1.0"),
    ],
)
def test_what_a_hand_did_to_a_conda_package_is_named_by_its_place(old: str, new: str, said: str) -> None:
    assert old in CONDA_TEXT
    with pytest.raises(UsageError) as caught:
        lockfile.load(CONDA_TEXT.replace(old, new, 1), PATH)
    assert caught.value.code == "invalid-lock"
    assert said in (caught.value.cause or "")


@pytest.mark.parametrize(
    ("old", "new"), [('lock-version = "1.0"', 'lock-version = "2.0"'), ("schema = 1", "schema = 2")]
)
def test_a_newer_envforge_is_told_as_that(old: str, new: str) -> None:
    with pytest.raises(UsageError) as caught:
        lockfile.load(TEXT.replace(old, new, 1), PATH)
    assert caught.value.code == "newer-record"


@pytest.mark.parametrize("text", ["", "a = 1", "tool = 3", "[tool]\nenvforge = 3", "[[tool.envforge]]", "packages = 1"])
def test_anything_else_is_no_lock(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        lockfile.load(text, PATH)
    assert caught.value.code == "invalid-lock"


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    binary, pipe = tmp_path / "binary", tmp_path / "pipe"
    binary.write_bytes(b"\xff\xfe")
    os.mkfifo(pipe)
    for path, code in (
        (binary, "invalid-lock"),
        (pipe, "unreadable-file"),
        (tmp_path, "unreadable-file"),
        (tmp_path / "none", "unreadable-file"),
    ):
        with pytest.raises(UsageError) as caught:
            lockfile.read(path)
        assert caught.value.code == code
