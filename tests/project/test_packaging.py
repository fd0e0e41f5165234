"""What ships: the lock files, the wheel and the sdist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(name: str) -> dict[str, tuple[str, int]]:
    """Canonical name -> version and number of hashes."""
    found: dict[str, tuple[str, int]] = {}
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line.partition("--hash")[0].strip())
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            found[canonicalize_name(requirement.name)] = (specifier.version, line.count("--hash=sha256:"))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_hashes_for_all_and_no_host(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^\s*-[^-]|^\s*--(?!hash=)", text, re.MULTILINE), "no option of pip, such as an index"
    assert all(hashes for _, hashes in locked(name).values())


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.lock", lambda: project()["project"]["dependencies"]),
        ("requirements-dev.lock", lambda: project()["dependency-groups"]["dev"]),
    ],
)
def test_a_lock_satisfies_the_project(name: str, wanted: Any) -> None:
    versions = locked(name)

    for requirement in map(Requirement, wanted()):
        version, _ = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}: run scripts/lock.sh"


def test_the_development_lock_holds_the_other_unchanged() -> None:
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()


def test_uv_is_held_to_one_minor_series() -> None:
    (uv,) = (Requirement(line) for line in project()["project"]["dependencies"] if line.startswith("uv"))
    version, _ = locked("requirements.lock")["uv"]
    minor = ".".join(version.split(".")[:2])

    assert uv.specifier.contains(f"{minor}.999")
    assert not uv.specifier.contains(f"{minor.partition('.')[0]}.{int(minor.partition('.')[2]) + 1}.0")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist and the wheel made from it, of a copy, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("built")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
    shutil.copytree(ROOT, folder / "copy", ignore=ignored)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "copy"],
        check=True,
        capture_output=True,
    )
    return folder


def data_files() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for folder in ("profiles", "recipes")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }


def test_the_wheel_holds_profiles_recipes_and_the_types_marker(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {f"envforge/_data/{path}" for path in data_files()} <= names
    assert {"envforge/py.typed", "envforge/__main__.py", "envforge/store/bundles/start.sh"} <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"envforge"}


def test_the_wheel_brings_the_command(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))

    assert "envforge = envforge.cli:main" in archive.read(points).decode()


def test_the_sdist_holds_what_a_packager_needs(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert data_files() <= names
    assert {"LICENSE", "CHANGELOG.md", "bootstrap.sh", *LOCKS, "tests/project/test_packaging.py"} <= names
