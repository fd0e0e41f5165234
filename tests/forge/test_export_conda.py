"""Exports of a conda environment: each is built from, with py-rattler in the place of conda, or says what it loses."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from engines.house import House
from forge import packed
from forge.dockerfile import build
from kit import by_list, packages
from kit.cli import PYTHON
from kit.rattling import make

from envforge.engines import uv as uv_engine
from envforge.forge.export import Wish, export
from envforge.forge.plan import plan
from envforge.model.errors import UsageError
from envforge.model.state import packages as packages_of
from envforge.model.state import shown
from envforge.model.views import ExportView
from envforge.profiles import loader
from envforge.profiles.importing import detect, render
from envforge.report.exports import RENDERERS
from envforge.system import http

STEPS = (
    *packed.STEPS,
    {"name": "mark", "run": ["python", "-c", "import sys\nopen(sys.prefix + '/mark', 'w').write('x')"]},
    {"name": "newer", "conda": ["hello >=2"]},
)
PROFILE: dict[str, Any] = {
    "environment": {"FROM_PROFILE": "a b"},
    "smoke": [{"import": ["hello", "idna"]}, {"command": ["tool"]}],
}
CONDAS = {"hello": "2.0", "pip": packages.pip().version, "python": packages.VERSION, "tool": "1.0"}
PIPS = {"six": "1.0.0", "idna": "3.0"}
CHECKER = shutil.which("shellcheck", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One environment for all: nothing here changes it."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, packed.served() as server:
        patch.setenv("HOME", str(root))
        patch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read
        server.put("forge", packages.pip())
        found = packed.house(root / "house", server)
        assert found.create(STEPS, **packed.options(server), **PROFILE).exit == 0
        yield found


def exported(made: House, form: str) -> ExportView:
    program = ("/opt/envforge", "--home", str(made.shop.home.root))
    return export(made.shop, "demo", Wish(form=form), renderers=RENDERERS, program=program, several=True).data


def written(made: House, form: str, folder: Path) -> Path:
    ((name, text),) = exported(made, form).files.items()
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def start(argv: list[str | Path], cwd: Path, *path: str | Path) -> str:
    """What a command says, with nothing of the host's but what is in ``path``."""
    variables = {
        "PATH": os.pathsep.join([*map(str, path), "/usr/bin", "/bin"]),
        "HOME": str(cwd),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
    }
    done = subprocess.run(list(map(str, argv)), cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def condas(prefix: Path) -> dict[str, str]:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in (prefix / "conda-meta").glob("*.json")]
    return {each["name"]: each["version"] for each in found}


def pips(prefix: Path) -> dict[str, str]:
    """What an installer other than conda put there."""
    found = {}
    for info in (prefix / "lib" / f"python{PYTHON}" / "site-packages").glob("*.dist-info"):
        if (info / "INSTALLER").read_text(encoding="utf-8").strip() != "conda":
            name, version = info.name.removesuffix(".dist-info").rsplit("-", 1)
            found[name] = version
    return found


def test_rattler_installs_the_explicit_list(made: House, tmp_path: Path) -> None:
    view = exported(made, "conda-explicit")
    listed = written(made, "conda-explicit", tmp_path)
    assert listed.name == "demo.explicit.txt"
    assert make(tmp_path, made.server.url("forge"), explicit=listed).error is None
    assert condas(tmp_path / "env") == CONDAS
    assert "what pip installs: `idna`, `six`" in view.lost
    assert not any("the Python" in each or "hashes" in each for each in view.lost)


@pytest.mark.slow
def test_an_environment_file_says_which_packages_and_pip_installs_the_rest(made: House, tmp_path: Path) -> None:
    document = yaml.safe_load(exported(made, "environment-yml").files["environment.yml"])
    assert document["channels"] == [made.server.url("forge"), "nodefaults"]
    assert document["variables"] == {"FROM_PROFILE": "a b", "PYTHONNOUSERSITE": "1"}
    *specs, rest = document["dependencies"]
    # As conda reads them: name, version and build.
    found = make(tmp_path, made.server.url("forge"), *specs)
    assert (found.error, condas(tmp_path / "env")) == (None, CONDAS)
    (tmp_path / "r.txt").write_text("\n".join(rest["pip"]), encoding="utf-8")
    python = tmp_path / "env" / "bin" / "python"
    start([python, "-m", "pip", "install", "--index-url", made.server.url("pypi"), "-r", "r.txt"], tmp_path)
    assert pips(tmp_path / "env") == PIPS


@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_what_pip_reads_has_no_conda_packages_and_says_so(made: House, form: str) -> None:
    view = exported(made, form)
    (text,) = view.files.values()
    assert "six" in text
    assert "tool" not in text
    assert "hello" not in text
    assert "the conda packages, and what they bring: `hello`, `pip`, `python`, `tool`" in view.lost


def test_the_script_does_the_same_by_hand(made: House, tmp_path: Path) -> None:
    by_list.put_on_path(tmp_path / "bin")
    script = written(made, "script", tmp_path)
    start(["sh", script, "new env"], tmp_path, tmp_path / "bin", Path(uv_engine.binary()).parent)
    assert (condas(tmp_path / "new env"), pips(tmp_path / "new env")) == (CONDAS, PIPS)
    assert (tmp_path / "new env" / "mark").exists()
    if CHECKER is not None:
        start([CHECKER, "--severity=warning", script], tmp_path)
    assert exported(made, "script").lost == ()


@pytest.mark.slow
def test_the_dockerfile_does_the_same_in_a_folder(made: House, tmp_path: Path) -> None:
    root = tmp_path / "image"
    by_list.put_on_path(root / "base")
    text = written(made, "dockerfile", tmp_path).read_text(encoding="utf-8")
    assert 'COPY --from=micromamba ["/bin/micromamba", "/bin/micromamba"]\n' in text
    image = build(text, root)
    assert (condas(root / "demo"), pips(root / "demo")) == (CONDAS, PIPS)
    assert image.variables["CONDA_PREFIX"] == str(root / "demo")
    assert "VIRTUAL_ENV" not in image.variables
    assert image.healthy()
    (root / "demo" / "bin" / "tool").unlink()
    assert not image.healthy()


def test_a_kernel_keeps_the_users_own_packages_out(made: House) -> None:
    spec = json.loads(exported(made, "kernelspec").files["kernel.json"])
    assert spec["env"] == {"FROM_PROFILE": "a b", "PYTHONNOUSERSITE": "1"}


def test_without_conda_lock_its_format_names_the_extra(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "conda_lock.lockfile.v1", None)
    with pytest.raises(UsageError, match="not installed") as caught:
        exported(made, "conda-lock")
    assert caught.value.code == "extra-missing"
    assert "envforge[conda-lock]" in (caught.value.hint or "")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["environment-yml", "conda-explicit"])
def test_what_is_exported_makes_a_profile_of_the_same(made: House, tmp_path: Path, form: str) -> None:
    text = render.render(detect.draft(written(made, form, tmp_path), name="again"))
    found = plan(made.shop, loader.loads(text, "again.yaml")).data
    assert {shown(name): item.version for name, item in packages_of(found.base).items()} == CONDAS
    added = {change.name for step in found.steps for change in step.changes}
    assert added == (PIPS.keys() if form == "environment-yml" else set())


def test_no_credentials_anywhere_and_whose_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with packed.served(auth="somebody:hush-hush") as server:
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password hush-hush\n", encoding="utf-8")
        (tmp_path / ".netrc").chmod(0o600)
        closed = packed.house(tmp_path / "house", server)
        assert closed.create(packed.STEPS[:1], **packed.options(server)).exit == 0
        for form in RENDERERS.keys() - {"conda-lock", "systemd", "kernelspec"}:
            view = exported(closed, form)
            assert f"`{server.url('forge')}`" in "\n".join(each for each in view.lost if "credentials" in each)
            assert "hush" not in "\n".join([*view.files.values(), *view.lost])
        lost = "\n".join(exported(closed, "script").lost)
        assert "no conda package brings pip" in lost


RENDER = """
import pathlib, sys
from conda_lock.lockfile import parse_conda_lock_file
from conda_lock.conda_lock import main
found = parse_conda_lock_file(pathlib.Path("conda-lock.yml"))
print(sorted((each.manager, each.name, each.version) for each in found.package))
sys.exit(main(["render", "-p", found.metadata.platforms[0], *sys.argv[1:], "conda-lock.yml"]))
"""


@pytest.mark.network
def test_conda_lock_reads_and_renders_its_lock(made: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path / "library")]
    subprocess.run([*pip, "conda-lock>=4,<5"], check=True)
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    view = exported(made, "conda-lock")
    written(made, "conda-lock", tmp_path)
    assert not any("hashes" in each or "conda packages" in each for each in view.lost)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "library")}
    for kind in ("explicit", "env"):
        words = [sys.executable, "-c", RENDER, "--kind", kind]
        done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        expected = [("conda", *each) for each in CONDAS.items()] + [("pip", *each) for each in PIPS.items()]
        assert done.stdout.splitlines()[0] == str(sorted(expected))
    (rendered,) = tmp_path.glob("conda-linux-*.lock")
    assert make(tmp_path, made.server.url("forge"), explicit=rendered).error is None
    assert condas(tmp_path / "env") == CONDAS
    environment = yaml.safe_load(next(tmp_path.glob("conda-linux-*.lock.yml")).read_text(encoding="utf-8"))
    assert len(environment["dependencies"][-1]["pip"]) == len(PIPS)
