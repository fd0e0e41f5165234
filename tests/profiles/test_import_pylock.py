"""pylock.toml (PEP 751)."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.importing import Case

from envforge.model.draft import SourceFormat
from envforge.model.errors import InvalidFileError, UsageError
from envforge.profiles.importing import detect

SHA = "0" * 64
LOCK = f"""\
lock-version = "1.0"
requires-python = "==3.10.*"
created-by = "some-tool"
extras = ["fast"]

[[packages]]
name = "six"
version = "1.16.0"
index = "https://files.example.org/simple"
wheels = [{{name = "six-1.16.0-py2.py3-none-any.whl", hashes = {{sha256 = "{SHA}"}}}}]

[[packages]]
name = "idna"
version = "3.4"
marker = "python_version < '3.12'"
index = "https://files.example.org/simple/"

[[packages]]
name = "torch"
version = "2.7.1+cu126"
index = "https://me:geheim@dl.example.org/whl/cu126"

[[packages]]
name = "kernels"
version = "1.0"
index = "https://wheels.company.example/simple"

[[packages]]
name = "speedups"
version = "1.0"
marker = "'fast' in extras"

[[packages]]
name = "own"
vcs = {{type = "git", url = "https://git.example.org/o/own.git", commit-id = "abc123", subdirectory = "py"}}

[[packages]]
name = "beside"
directory = {{path = "./beside", editable = true}}

[[packages]]
name = "packed"
archive = {{url = "https://f.example.org/packed-1.0.tar.gz", hashes = {{sha256 = "{SHA}"}}}}

[[packages]]
name = "odd"
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_lock(case: Case) -> None:
    found = case.draft("pylock.toml", LOCK)
    assert found.format is SourceFormat.PYLOCK
    assert found.profile.python == "3.10"
    assert found.installs == [(
        "six==1.16.0",
        "idna==3.4 ; python_version < '3.12'",
        "torch==2.7.1",
        "kernels==1.0",
        "own @ git+https://git.example.org/o/own.git@abc123#subdirectory=py",
        "beside @ ./beside",
        f"packed @ https://f.example.org/packed-1.0.tar.gz#sha256={SHA}",
    )]  # fmt: skip
    assert {index.name: (index.url, index.packages) for index in found.profile.indexes} == {
        "torch-cu126": ("https://dl.example.org/whl/cu126", ("torch",)),
        "company": ("https://wheels.company.example/simple", ("kernels",)),
        "pypi": ("https://files.example.org/simple", ()),
    }
    assert "geheim" not in found.text
    assert "for an extra or a dependency group" in found.lost[28]
    assert "neither a version nor a source" in found.lost[45]
    assert "later edits" in found.assumed[37]
    assert "`extras`" in found.lost[4]


def test_it_is_known_by_its_content_and_named_after_its_middle(case: Case) -> None:
    assert case.draft("lock.txt", LOCK).format is SourceFormat.PYLOCK
    named = case.put("pylock.server.toml", LOCK)
    assert detect.draft(named, name=None).profile.name == "server"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('lock-version = "1.0"\npackages = [\n', "pylock.toml:3:1: TOML: "),
        ("x = 1\nlock-version = \n", "pylock.toml:2:16: TOML: "),
        (LOCK.replace('"1.0"', '"2.0"', 1), "pylock.toml:1:1: version `2.0` of the lock is not known"),
        ('lock-version = "1.0"\npackages = 3\n', "pylock.toml:2:1: `packages` is no list"),
        ('lock-version = "1.0"\n[[packages]]\nversion = "1"\n', "pylock.toml:2:1: a locked package without"),
        ("a = " + "[" * 5000, "TOML: "),
    ],
)
def test_locks_that_cannot_be_read(case: Case, content: str, said: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        case.draft("pylock.toml", content)
    assert said in str(caught.value.cause)


def test_other_toml_is_no_lock(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("pyproject.toml", "[project]\nname = 'x'\n")
    assert caught.value.code == "unknown-format"
    assert "`pylock.toml`" in str(caught.value.hint)
