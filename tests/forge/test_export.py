"""Each export is proved by the tool that it is for, as far as that can be had, and says what it cannot carry."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from engines.house import House
from forge import small_home
from forge.dockerfile import build
from kit.check import ended
from kit.cli import PYTHON, Cli
from kit.index import Index, Server, serve
from kit.wheels import Sdist, Wheel

from envforge.engines import uv as uv_engine
from envforge.forge.export import Wish, export
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import FOR_CONDA
from envforge.model.views import ExportView
from envforge.report.exports import RENDERERS
from envforge.system import http

CU = Wheel(name="torch", version="2.7.1+cu126", requires=("numpy",))
OLD_NUMPY = Wheel(name="numpy", version="1.0.0")
PLAIN = Wheel(name="torch", version="2.7.1")
NUMPY = Wheel(name="numpy", version="2.0.0")
NEWER = Wheel(name="numpy", version="2.1.0")
OTHER = Wheel(name="numpy", version="2.1.0", files={"numpy/other.py": "x = 1\n"})
SDIST = Sdist(wheel=Wheel(name="old", version="1.0.0"))
CHECKER = shutil.which("shellcheck", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
STEPS = [
    {"name": "torch", "install": ["torch", "numpy==2.0.0"]},
    {"name": "numpy", "pin": ["numpy==2.1.0"]},
]
MADE = {"torch": "2.7.1+cu126", "numpy": "2.1.0"}
PROFILE: dict[str, Any] = {
    "summary": "a small one",
    "environment": {"FROM_PROFILE": '100% "of" it\'s $HOME'},
    "guards": [{"hold": "numpy<3", "because": "later ones\nare slow"}],
    "smoke": [{"import": ["torch"]}, {"python": "import numpy\nassert numpy.__version__ == '2.1.0'"}],
    "commands": {"serve": ["python", "-c", "print('serving')"]},
}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture
def server() -> Iterator[Server]:
    indexes = {
        "torch": Index(artefacts=[CU, OLD_NUMPY]),
        "pypi": Index(artefacts=[PLAIN, NUMPY, NEWER, SDIST]),
    }
    with serve(indexes) as running:
        yield running


def house(tmp_path: Path, server: Server, *more: Mapping[str, Any]) -> House:
    """An environment whose torch comes from one index and all else from the other."""
    made = House(tmp_path, server)
    made.indexes = [
        {"name": "torch", "url": server.url("torch"), "packages": ["torch"]},  # type: ignore[dict-item]
        {"name": "pypi", "url": server.url("pypi")},
    ]
    assert made.create([*STEPS, *more], **PROFILE).exit == 0
    return made


def exported(made: House, form: str, *, command: str | None = None, output: Path | None = None) -> ExportView:
    wish = Wish(form=form, command=command, output=str(output) if output else None)
    program = ("/opt/en v/bin/envforge", "--home", str(made.shop.home.root))
    answer = export(made.shop, "demo", wish, renderers=RENDERERS, program=program, several=True)
    assert answer.exit == 0
    return answer.data


def text(made: House, form: str) -> str:
    (found,) = exported(made, form).files.values()
    return found


def start(argv: Sequence[str | Path], cwd: Path, *, uv: bool = False) -> str:
    path = [str(Path(uv_engine.binary()).parent)] if uv else []
    variables = {
        "PATH": os.pathsep.join([*path, "/usr/bin", "/bin"]),
        "HOME": str(cwd),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHON": str(Path(sys._base_executable).resolve()),  # type: ignore[attr-defined]
        "UV_CACHE_DIR": str(cwd / "uv-cache"),
        "UV_NO_CONFIG": "1",
    }
    done = subprocess.run(list(map(str, argv)), cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def fresh(folder: Path) -> Path:
    """The python of a new environment, with the pip that comes with it."""
    folder.mkdir(exist_ok=True)
    start([sys._base_executable, "-m", "venv", folder / "venv"], folder)  # type: ignore[attr-defined]
    return folder / "venv" / "bin" / "python"


def installed(prefix: Path) -> dict[str, str]:
    pairs = (
        path.name.removesuffix(".dist-info").rsplit("-", 1) for path in prefix.glob("lib/*/site-packages/*.dist-info")
    )
    return {name: version for name, version in pairs if name not in {"pip", "setuptools"}}


# -- requirements and pylock -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pip_rebuilds_from_the_requirements(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server, {"name": "old", "install": ["old"]})
    server.put("torch", OTHER)  # another file of a version that was taken from elsewhere
    view = exported(made, "requirements", output=tmp_path / "r.txt")
    assert view.written == (str(tmp_path / "r.txt"),)
    place = tmp_path / "other"
    python = fresh(place)
    shutil.copy(next((made.settings.cache / "built" / "wheels").glob("*/old-*.whl")), place)
    start([python, "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", tmp_path / "r.txt"], place)
    assert installed(place / "venv") == {**MADE, "old": "1.0.0"}
    lost = "\n".join(view.lost)
    assert "lay `old-1.0.0-py3-none-any.whl` beside it" in lost
    assert "which distribution comes from which index" in lost


@pytest.mark.slow
@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_uv_rebuilds_from_either(tmp_path: Path, server: Server, form: str) -> None:
    made = house(tmp_path, server)
    file = tmp_path / ("pylock.demo.toml" if form == "pylock" else "r.txt")
    file.write_text(text(made, form), encoding="utf-8")
    python = fresh(tmp_path / "other")
    said = re.search(r"^# uv pip install (.*) -r FILE$", file.read_text(encoding="utf-8"), re.MULTILINE)
    options = said[1].split() if said else ["--no-deps"]
    start(["uv", "pip", "install", "--python", python, *options, "-r", file], tmp_path, uv=True)
    assert installed(tmp_path / "other" / "venv") == MADE


def test_the_installers_own_default_index_is_left_to_it(tmp_path: Path, server: Server) -> None:
    with serve({"pypi": Index(artefacts=[NUMPY])}) as only:
        made = House(tmp_path, only, mirrors={"pypi": (only.url("pypi"),)})
        made.indexes = [{"name": "pypi"}]
        assert made.create([{"name": "numpy", "install": ["numpy"]}]).exit == 0
        assert "index-url" not in text(made, "requirements")


def test_no_credentials_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_PYPI_USERNAME", "somebody")
    monkeypatch.setenv("ENVFORGE_INDEX_PYPI_PASSWORD", "hush-hush")
    with serve({"pypi": Index(artefacts=[NUMPY], auth="somebody:hush-hush")}) as server:
        made = House(tmp_path, server)
        assert made.create([{"name": "numpy", "install": ["numpy"]}], commands={"serve": ["python"]}).exit == 0
        for form in (*(RENDERERS.keys() - FOR_CONDA), "pylock"):
            view = exported(made, form, command="serve" if form == "systemd" else None)
            everything = "\n".join([*view.files.values(), *view.lost])
            assert "hush" not in everything
            if form not in {"systemd", "kernelspec"}:
                assert "the credentials of `pypi`" in everything
                assert str(made.root / "forge") not in "\n".join(view.files.values())


# -- script and dockerfile ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uv", [pytest.param(False, marks=pytest.mark.slow), True], ids=["pip", "uv"])
def test_the_script_does_the_same_by_hand(tmp_path: Path, server: Server, uv: bool) -> None:
    run = {"name": "mark", "run": ["python", "-c", "open('mark', 'w').write('it''s')"], "environment": {"A": "b c"}}
    made = house(tmp_path, server, {"name": "old", "install": ["old"]}, run, {"name": "away", "uninstall": ["old"]})
    place = tmp_path / "by hand"
    place.mkdir()
    view = exported(made, "script", output=place / "demo.sh")
    assert any("lay `old-1.0.0-py3-none-any.whl` beside it" in each for each in view.lost)  # though it goes again
    shutil.copy(next((made.settings.cache / "built" / "wheels").glob("*/old-*.whl")), place)
    start(["sh", "by hand/demo.sh", "new env"], tmp_path, uv=uv)
    assert installed(tmp_path / "new env") == MADE
    assert (tmp_path / "new env" / "mark").read_text(encoding="utf-8") == "its"
    assert not (tmp_path / "new env" / "step.txt").exists()
    script = (place / "demo.sh").read_text(encoding="utf-8")
    assert "# - hold numpy<3 (later ones\n# are slow)\n" in script
    start(["sh", "-n", place / "demo.sh"], tmp_path)


@pytest.mark.slow
def test_a_build_that_was_replaced_by_another_of_its_version(tmp_path: Path, server: Server) -> None:
    server.put("torch", OTHER)
    made = House(tmp_path, server)
    steps = [
        {"name": "first", "install": ["numpy==2.1.0"], "indexes": ["pypi"]},
        {"name": "away", "uninstall": ["numpy"]},
        {"name": "second", "install": ["numpy==2.1.0"], "indexes": ["torch"]},
    ]
    assert made.create(steps).exit == 0
    exported(made, "script", output=tmp_path / "demo.sh")
    start(["sh", "demo.sh", "new"], tmp_path)
    assert (tmp_path / "new" / "lib" / f"python{PYTHON}" / "site-packages" / "numpy" / "other.py").exists()


@pytest.mark.skipif(CHECKER is None, reason="no shellcheck here")
def test_shellcheck_finds_nothing_in_the_script(tmp_path: Path, server: Server) -> None:
    exported(house(tmp_path, server), "script", output=tmp_path / "demo.sh")
    start([str(CHECKER), "--severity=warning", "demo.sh"], tmp_path)


@pytest.mark.slow
def test_the_dockerfile_does_in_a_folder_what_the_steps_did(tmp_path: Path, server: Server) -> None:
    run = {
        "name": "mark",
        "run": ["python", "-c", "import os\nopen(os.environ['VIRTUAL_ENV'] + '/mark', 'w').write('x')"],
    }
    made = house(tmp_path, server, {"name": "old", "install": ["old"]}, run)
    wheel = next((made.settings.cache / "built" / "wheels").glob("*/old-*.whl"))
    root = tmp_path / "image"
    (root / "base").mkdir(parents=True)
    (root / "base" / "python").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    image = build(text(made, "dockerfile"), root, wheel)
    assert installed(root / "demo") == {**MADE, "old": "1.0.0"}
    assert (root / "demo" / "mark").exists()
    assert image.variables["FROM_PROFILE"] == PROFILE["environment"]["FROM_PROFILE"]
    assert image.healthy()
    shutil.rmtree(root / "demo" / "lib" / f"python{PYTHON}" / "site-packages" / "torch")
    assert not image.healthy()


# -- what starts envforge ----------------------------------------------------------------------------------------------


def test_the_units_are_what_systemd_takes(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    view = exported(made, "systemd", command="serve", output=tmp_path / "units")
    names = [Path(each).name for each in view.written]
    assert names == ["demo-serve.service", "demo-audit.service", "demo-audit.timer"]
    service = view.files["demo-serve.service"]
    assert (
        f'ExecStart="/opt/en v/bin/envforge" "--home" "{made.shop.home.root}" "run" "--strict" "demo" "serve"'
        in service
    )
    assert 'Environment="FROM_PROFILE=100%% \\"of\\" it\'s $HOME"\n' in service


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_verifies_the_units(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path / "cli")
    cli.profile(server.url("pypi"), [{"name": "numpy", "install": ["numpy"]}], **PROFILE | {"smoke": []})
    ended(cli.run("create", "demo"))
    units = ended(cli.run("export", "demo", "--format", "systemd", "--command", "serve", "-o", "units")).data["written"]
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], cwd=cli.work, capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "demo-" in line]
    assert not ours, done.stderr


def test_the_kernel_is_one_and_starts_by_its_words(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path / "cli")
    kernel = Wheel(
        name="ipykernel", version="6.0", files={"ipykernel_launcher.py": "import sys\nprint(sys.argv[1:])\n"}
    )
    server.put("pypi", kernel)
    cli.profile(server.url("pypi"), [{"name": "kernel", "install": ["ipykernel"]}], environment={"A": "b"})
    ended(cli.run("create", "demo"))
    answer = ended(cli.run("export", "demo", "--format", "kernelspec", "-o", "kernel"))
    assert answer.data["lost"] == ["the environment itself: `demo` must be there on the host"]
    spec = json.loads((cli.work / "kernel" / "kernel.json").read_text(encoding="utf-8"))
    # As the documentation of jupyter_client says: argv, display_name and language must be there.
    assert set(spec) == {"argv", "display_name", "language", "env", "metadata"}
    assert all(isinstance(each, str) for each in (*spec["argv"], spec["display_name"], *spec["env"].values()))
    assert (spec["language"], spec["env"]) == ("python", {"A": "b", "PYTHONNOUSERSITE": "1"})
    place = spec["argv"].index("run")
    assert spec["argv"][place - 2 : place] == ["--home", str(cli.home)]
    words = [each.replace("{connection_file}", "c.json") for each in spec["argv"][place:]]
    child = cli._popen(tuple(words))
    assert child.communicate()[0] == "['-f', 'c.json']\n"


@pytest.mark.slow
def test_an_environment_of_conda_gets_its_python_and_pip_the_rest(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path, server)
    document = yaml.safe_load(text(made, "environment-yml"))
    assert document["name"] == "demo"
    python, pip, (rest,) = document["dependencies"][0], document["dependencies"][1], document["dependencies"][2:]
    assert python.startswith(f"python={PYTHON}.")
    assert pip == "pip"
    assert rest["pip"][:2] == [f"--extra-index-url {server.url(name)}" for name in ("torch", "pypi")]
    assert rest["pip"][2:] == ["torch==2.7.1+cu126", "numpy==2.1.0"]
    (tmp_path / "r.txt").write_text("\n".join(rest["pip"]), encoding="utf-8")
    start(
        [
            fresh(tmp_path / "other"),
            "-m",
            "pip",
            "install",
            "--index-url",
            server.url("pypi"),
            "-r",
            tmp_path / "r.txt",
        ],
        tmp_path,
    )
    assert installed(tmp_path / "other" / "venv") == MADE


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "command", "code"),
    [
        ("conda-lock", None, "format-needs-conda"),
        ("conda-explicit", None, "format-needs-conda"),
        ("requirement", None, "no-such-format"),
        ("systemd", None, "usage"),
        ("systemd", "none", "usage"),
        ("script", "serve", "usage"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, form: str, command: str | None, code: str) -> None:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    with pytest.raises(UsageError) as caught:
        export(shop, "small", Wish(form=form, command=command), renderers=RENDERERS, program=("x",), several=True)
    assert caught.value.code == code


def test_the_command(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path / "cli")
    cli.profile(server.url("pypi"), [{"name": "numpy", "install": ["numpy"]}], commands={"serve": ["python"]})
    ended(cli.run("create", "demo"))
    answer = ended(cli.run("export", "demo", "--format", "requirements"))
    assert "`requirements` does not carry the Python" in answer.stderr
    assert answer.data["written"] == []
    child = cli._popen(("export", "demo", "--format", "requirements", "-o", "-"))
    assert child.communicate()[0] == answer.data["files"]["requirements.txt"]
    child = cli._popen(("export", "demo", "--format", "kernelspec"))
    assert "-o FOLDER" in child.communicate()[1]
    assert child.returncode == 2
    answer = ended(cli.run("export", "demo", "--format", "script", "-o", "."), 1)
    assert answer.document["error"]["code"] == "not-writable"
    (cli.work / "file").touch()
    answer = ended(cli.run("export", "demo", "--format", "kernelspec", "-o", "file"), 1)
    assert answer.document["error"]["code"] == "not-writable"
    assert ended(cli.run("export", "none", "--format", "script"), 2).document["error"]["code"] == "no-such-environment"


def test_what_was_adopted_no_lock_knows(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    (shop.home.record("small", 1) / "adopted").write_text("/somewhere\n", encoding="utf-8")
    with pytest.raises(EnvforgeError) as caught:
        export(shop, "small", Wish(form="script"), renderers=RENDERERS, program=("x",), several=True)
    assert caught.value.code in {"not-restorable", "no-generation"}
