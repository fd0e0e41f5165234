"""The file that an installer takes, among all that an index offers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from envforge.engines.artefacts import build_tag, choose, version_of
from envforge.engines.pages import Row

TAGS = ("cp311-cp311-manylinux_2_17_x86_64", "cp311-abi3-linux_x86_64", "py3-none-any", "py2-none-any")
RANK = {tag: place for place, tag in enumerate(TAGS)}


def rows(*files: str) -> list[Row]:
    return [Row(file=file, url=f"https://x/{file}") for file in files]


def chosen(version: str, *files: str, name: str = "six") -> str | None:
    row = choose(rows(*files), name, version, RANK)
    return row.file if row else None


CASES = [
    ("1.0", ["six-1.0-py3-none-any.whl", "six-1.0.tar.gz"], "six-1.0-py3-none-any.whl"),
    ("1.0", ["six-1.0.tar.gz"], "six-1.0.tar.gz"),
    ("1.0", ["six-1.0.zip", "six-1.0.tar.gz"], "six-1.0.tar.gz"),
    ("1.0", ["six-1.0.tar.gz", "six-1.0.zip"], "six-1.0.tar.gz"),
    ("1.0", ["six-1.0.zip"], "six-1.0.zip"),
    ("1.0", ["six-1.1-py3-none-any.whl"], None),
    ("1.0", [], None),
    ("1.0", ["six-1.0-cp39-cp39-linux_x86_64.whl"], None),
    ("1.0", ["six-1.0-cp39-cp39-linux_x86_64.whl", "six-1.0.tar.gz"], "six-1.0.tar.gz"),
    # the best tag wins, in whatever order they stand
    (
        "1.0",
        ["six-1.0-py3-none-any.whl", "six-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"],
        "six-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
    ),
    ("1.0", ["six-1.0-cp311-abi3-linux_x86_64.whl", "six-1.0-py3-none-any.whl"], "six-1.0-cp311-abi3-linux_x86_64.whl"),
    ("1.0", ["six-1.0-py2-none-any.whl", "six-1.0-py2.py3-none-any.whl"], "six-1.0-py2.py3-none-any.whl"),
    # then the highest build, as a number
    ("1.0", ["six-1.0-9-py3-none-any.whl", "six-1.0-10-py3-none-any.whl"], "six-1.0-10-py3-none-any.whl"),
    ("1.0", ["six-1.0-1-py3-none-any.whl", "six-1.0-py3-none-any.whl"], "six-1.0-1-py3-none-any.whl"),
    ("1.0", ["six-1.0-1a-py3-none-any.whl", "six-1.0-1b-py3-none-any.whl"], "six-1.0-1b-py3-none-any.whl"),
    (
        "1.0",
        ["six-1.0-7-py3-none-any.whl", "six-1.0-cp311-abi3-linux_x86_64.whl"],
        "six-1.0-cp311-abi3-linux_x86_64.whl",
    ),
    # spellings of one version
    ("1.0", ["six-1.0.0-py3-none-any.whl"], "six-1.0.0-py3-none-any.whl"),
    ("1.0.0", ["six-1.0-py3-none-any.whl"], "six-1.0-py3-none-any.whl"),
    ("1.0", ["six-1.0.0.tar.gz", "six-1-py3-none-any.whl"], "six-1-py3-none-any.whl"),
    ("2026.1.2", ["six-2026.01.02-py3-none-any.whl"], "six-2026.01.02-py3-none-any.whl"),
    ("1.0rc1", ["six-1.0.RC1-py3-none-any.whl"], "six-1.0.RC1-py3-none-any.whl"),
    ("1.0.post1", ["six-1.0.r1-py3-none-any.whl"], "six-1.0.r1-py3-none-any.whl"),
    ("1!1.0", ["six-1.0-py3-none-any.whl", "six-1!1.0-py3-none-any.whl"], "six-1!1.0-py3-none-any.whl"),
    # local versions
    ("2.0+cu126", ["six-2.0-py3-none-any.whl", "six-2.0+cu126-py3-none-any.whl"], "six-2.0+cu126-py3-none-any.whl"),
    ("2.0", ["six-2.0+cu126-py3-none-any.whl", "six-2.0-py3-none-any.whl"], "six-2.0-py3-none-any.whl"),
    ("2.0", ["six-2.0+cu126-py3-none-any.whl"], None),
    # what is no file of this name
    ("1.0", ["sixer-1.0-py3-none-any.whl", "six-er-1.0.tar.gz", "six-1.0.exe", "six-1.0-py2.7.egg", "six"], None),
    ("1.0", ["six-1.0-py3-none-any.whl.metadata", "six-1.0.tar.gz.asc", ".whl", "-.whl", "-1.0.tar.gz"], None),
    ("1.0", ["six-1.0-x-py3-none-any.whl", "six-1.0-py3-none-any.whl"], "six-1.0-py3-none-any.whl"),
]


@pytest.mark.parametrize(("version", "files", "expected"), CASES)
def test_the_file_of_a_version(version: str, files: list[str], expected: str | None) -> None:
    assert chosen(version, *files) == expected


def test_a_local_version_with_an_underscore() -> None:
    assert chosen("2.0+a.b", "six-2.0+a_b-py3-none-any.whl") == "six-2.0+a_b-py3-none-any.whl"


def test_a_wheel_that_does_not_fit_hides_no_other_spelling() -> None:
    files = ["six-1.0.0-cp39-cp39-linux_x86_64.whl", "six-1.0-py3-none-any.whl"]
    assert chosen("1.0.0", *files) == "six-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ruamel-yaml", "ruamel.yaml-1.0-py3-none-any.whl"),
        ("ruamel-yaml", "ruamel_yaml-1.0-py3-none-any.whl"),
        ("ruamel-yaml", "Ruamel.YAML-1.0-py3-none-any.whl"),
        ("ruamel-yaml", "ruamel.yaml-1.0.tar.gz"),
        ("ruamel-yaml", "ruamel-yaml-1.0.tar.gz"),
        ("ruamel-yaml", "ruamel__yaml-1.0.zip"),
        ("a-1", "a-1-1.0.tar.gz"),
        ("a-1", "a_1-1.0-py3-none-any.whl"),
    ],
)
def test_names_in_every_spelling(name: str, file: str) -> None:
    assert version_of(file, name) == Version("1.0")
    assert chosen("1.0", file, name=name) == file


VERSIONS = st.from_regex(r"\A([0-9]{1,2}!)?[0-9]{1,4}(\.[0-9]{1,3}){0,3}((a|b|rc)[0-9])?(\.post[0-9])?\Z")


@given(VERSIONS, VERSIONS)
def test_only_the_version_that_is_asked(asked: str, offered: str) -> None:
    file = f"six-{offered}-py3-none-any.whl"
    expected = file if Version(asked) == Version(offered) else None
    assert chosen(str(Version(asked)), file) == expected


@given(st.text(max_size=30))
def test_no_name_breaks_the_choice(file: str) -> None:
    for suffix in ("", ".whl", ".tar.gz", ".zip"):
        chosen("1.0", file + suffix, f"six-1.0-{file}{suffix}")
        version_of(file + suffix, "six")
        build_tag(file + suffix)


@pytest.mark.parametrize(
    ("file", "tag"),
    [
        ("six-1.0-py3-none-any.whl", None), ("six-1.0-3-py3-none-any.whl", "3"),
        ("six-1.0-3a_b-py3-none-any.whl", "3a_b"),
        ("six-1.0.tar.gz", None), ("nonsense.whl", None),
    ],
)  # fmt: skip
def test_build_tags(file: str, tag: str | None) -> None:
    assert build_tag(file) == tag
