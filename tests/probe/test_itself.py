"""The envforge that runs, with all that it requires, as it is installed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import envforge
from envforge.model.errors import EnvforgeError
from envforge.probe import itself
from envforge.profiles import lookup
from envforge.system import environ


def test_all_that_is_required_is_there_and_nothing_of_this_place(tmp_path: Path) -> None:
    found = itself.look({"profiles": lookup.shipped("profiles"), "recipes": lookup.shipped("recipes")})
    names = dict(found.files)
    assert {"bin/uv", "site/envforge/cli/app.py", "site/envforge/store/bundles/start.sh"} <= names.keys()
    assert "site/envforge/_data/profiles/quickstart.yaml" in names
    assert all(name.startswith(("bin/", "site/")) and ".." not in name.split("/") for name in names)
    assert not [name for name in names if name.endswith((".pyc", "direct_url.json", "/INSTALLER"))]
    # Its own tools for development are not among them, nor scripts that name this Python.
    assert not {name.split("/")[1] for name in names} & {"pytest", "mypy", "ruff", "typer-script"}
    assert not [name for name, path in names.items() if name.startswith("bin/") and path.read_bytes()[:2] == b"#!"]
    assert (found.program.version, found.program.needs.architecture) == (envforge.__version__, environ.architecture())


@pytest.mark.slow
def test_laid_out_by_itself_it_runs(tmp_path: Path) -> None:
    found = itself.look({"profiles": lookup.shipped("profiles"), "recipes": lookup.shipped("recipes")})
    for name, path in found.files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(path)
    code = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(tmp_path / 'site')!r}]"
    code += "\nimport runpy; sys.argv = ['envforge', 'profiles']; runpy.run_module('envforge', run_name='__main__')"
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "quickstart" in done.stdout) == (0, True), done.stderr


def test_its_metadata_says_what_the_project_does() -> None:
    name, text = itself.look({}).metadata
    assert name == f"site/envforge-{envforge.__version__}.dist-info/METADATA"
    required = [Requirement(line.partition(": ")[2]).name for line in text.splitlines() if line.startswith("Requires")]
    assert {"uv", "httpx", "typer"} <= set(required)


def test_an_installation_that_does_not_say_what_belongs_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "sh-2.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sh\nVersion: 2.2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EnvforgeError, match="`sh` of this installation") as caught:
        itself.look({})
    assert caught.value.code == "not-packable"
