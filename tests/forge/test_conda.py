"""The backend conda, over real channels and indexes on loopback: planned, built, drifted, repaired, built again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit import packages
from kit.channel import SUBDIR, Channel, Package
from kit.check import contract, ended, errors
from kit.cli import PYTHON, Answer, Cli
from kit.index import Fault, Index, Server, serve
from kit.wheels import Wheel

BASE = packages.python()
TOOL = packages.module(
    "tool", "1.0", files={"tool/__init__.py": "def main():\n    print('tool 1.0')\n"}, scripts={"tool": "tool:main"}
)
NEWER = packages.module("tool", "2.0", files={"tool/__init__.py": "def main():\n    print('tool 2.0')\n"})
PREFIXED = packages.prefixed()
SIX = Wheel(name="six", version="1.0.0")
FORGE = (BASE, TOOL, NEWER, PREFIXED)
STEP = {"name": "six", "install": ["six"]}


class World:
    """A channel called ``forge``, an index, and a command line with a profile for both."""

    def __init__(self, server: Server, cli: Cli) -> None:
        self.server = server
        self.cli = cli

    def profile(self, steps: Sequence[Mapping[str, Any]] = (STEP,), specs: Sequence[str] = ("prefixed",)) -> None:
        channels = [self.server.url("forge")]
        self.cli.profile(
            self.server.url("pypi"), steps, backend="conda", conda={"channels": channels, "packages": [*specs]}
        )

    def run(self, *words: str) -> Answer:
        return self.cli.run(*words, "--json")

    @property
    def prefix(self) -> Path:
        return self.cli.link().resolve()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serve({"forge": Channel(packages=FORGE), "pypi": Index(artefacts=(SIX,))}) as server:
        found = World(server, Cli(root=tmp_path))
        found.profile()
        yield found


def meta(prefix: Path, name: str) -> dict[str, Any]:
    [path] = prefix.glob(f"conda-meta/{name}-*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def told(answer: Answer) -> list[str]:
    """The errors and warnings of an answer that ended well."""
    return [each["message"] for each in ended(answer).document["findings"] if each["severity"] != "info"]


def names(changes: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    return {change["name"]: change["to"] for change in changes}


def test_what_is_built_is_what_was_planned_and_what_conda_accepts(world: World) -> None:
    planned = ended(world.run("plan", "demo"))
    assert names(planned.data["base"]) == {"python": BASE.version, "prefixed": "1.0"}
    assert planned.data["backend"] == "conda"
    assert not world.server.requests("file", "*.tar.bz2"), "a plan fetches no package"

    ended(world.run("create", "demo"))

    python = meta(world.prefix, "python")
    assert (python["channel"].rstrip("/"), python["requested_specs"]) == (
        world.server.url("forge").rstrip("/"),
        [f"python {PYTHON}.*"],
    )
    assert str(world.prefix) in (world.prefix / "share/prefixed/text").read_text()
    history = (world.prefix / "conda-meta/history").read_text()
    assert f"::prefixed-1.0-{PREFIXED.build}" in history
    assert f"# update specs: ['python {PYTHON}.*', 'prefixed']" in history
    said = json.loads((world.prefix / "conda-meta/state").read_text())
    assert said["env_vars"]["PYTHONNOUSERSITE"] == "1"
    assert world.cli.installed() == {"six": "1.0.0"}
    assert told(world.run("audit", "demo", "--deep")) == []
    again = ended(world.run("plan", "demo"))
    assert again.data["totals"]["download"] == 0


@pytest.mark.slow
def test_a_conda_step_adds_keeps_and_is_explained(world: World) -> None:
    world.profile([STEP, {"name": "tool", "conda": ["tool <2"]}])
    ended(world.run("create", "demo"))

    assert world.cli.installed() == {"six": "1.0.0", "tool": "1.0"}
    history = ended(world.run("history", "demo")).data["generations"][-1]["steps"]
    [change] = history[-1]["changes"]
    assert (change["name"], change["to"], change["because"]) == ("tool", "1.0", "the step asks for tool <2")
    ran = world.cli.run("run", "demo", "tool")
    assert (ran.exit, ran.stdout) == (0, "tool 1.0\n")


def test_a_conda_step_over_what_pip_installed_is_refused_before_anything_happens(world: World) -> None:
    world.server.put("pypi", Wheel(name="tool", version="0.5"))
    world.profile([{"name": "wheel", "install": ["tool<1"]}, {"name": "over", "conda": ["tool"]}])
    answer = ended(world.run("create", "demo"), 1)
    error = answer.document["error"]
    assert error["code"] == "conda-would-overwrite"
    assert "`tool` 0.5 that pip installed" in error["message"]
    assert not world.server.requests("file", "*tool-*")


@pytest.mark.slow
def test_a_file_of_another_name_is_found_in_the_way_too(world: World) -> None:
    stray = Package(name="stray", version="1", files={f"lib/python{PYTHON}/site-packages/six/__init__.py": "mine\n"})
    world.server.put("forge", stray)
    world.profile([STEP, {"name": "over", "conda": ["stray"]}])
    answer = ended(world.run("create", "demo"), 1)
    assert answer.document["error"]["code"] == "conda-would-overwrite"
    assert "six/__init__.py`, which is of `six`" in answer.document["error"]["message"]


@pytest.mark.slow
def test_pip_over_conda_is_told_in_plan_and_audit(world: World) -> None:
    world.server.put("pypi", Wheel(name="tool", version="3.0", files={"tool/__init__.py": "three = 3\n"}))
    world.profile([{"name": "over", "install": ["tool>=3"]}], ["tool <2"])
    for answer in (world.run("plan", "demo"), world.run("create", "demo"), world.run("audit", "demo", "--deep")):
        [found] = [each for each in ended(answer).document["findings"] if each["id"] == "file-clobbered"]
        assert (found["severity"], found["subject"]) == ("warning", "tool")
        assert "conda package `tool` 1.0" in found["message"]
    assert world.cli.installed() == {"tool": "3.0"}


def test_drift_in_both_is_named_and_repaired(world: World) -> None:
    world.profile([STEP], ["prefixed", "tool <2"])
    ended(world.run("create", "demo"))
    ended(world.run("create", "demo", "--name", "other"))
    prefix, site = world.prefix, world.cli.site()
    (prefix / "share/prefixed/binary").unlink()
    (site / "tool/__init__.py").unlink()
    (site / "six.py").unlink(missing_ok=True)
    shutil.rmtree(site / "six", ignore_errors=True)
    with (prefix / "bin/tool").open("a") as stream:
        stream.write("# more\n")
    next(prefix.glob("conda-meta/prefixed-*")).unlink()

    answer = ended(world.run("audit", "demo"), 3)
    assert errors(answer) >= {("package-missing", "prefixed"), ("file-missing", "tool"), ("file-modified", "tool")}
    assert any(subject == "six" for _, subject in errors(answer))
    assert not [each for each in answer.document["findings"] if "conda:" in str(each)]

    shown = ended(world.run("repair", "demo", "--dry-run"), 3)
    assert {each["subject"] for each in shown.data["actions"]} == {"prefixed", "tool", "six"}
    ended(world.run("repair", "demo"))
    assert told(world.run("audit", "demo", "--deep")) == []
    assert told(world.run("audit", "other", "--deep")) == []
    assert world.cli.run("run", "demo", "tool").stdout == "tool 1.0\n"


def test_a_file_written_through_its_link_is_cured_in_the_cache_too(world: World) -> None:
    world.profile([STEP], ["tool <2"])
    ended(world.run("create", "demo"))
    with (world.cli.site() / "tool/__init__.py").open("a") as stream:
        stream.write("# poison\n")
    answer = ended(world.run("create", "demo", "--name", "second"))
    assert "damaged copy of `tool`" in answer.stderr
    assert told(world.run("audit", "second", "--deep")) == []
    ended(world.run("audit", "demo"), 3)
    ended(world.run("repair", "demo"))
    assert told(world.run("audit", "demo", "--deep")) == []


@pytest.mark.slow
def test_what_conda_is_told_behind_ones_back_is_drift(world: World) -> None:
    ended(world.run("create", "demo"))
    record = meta(world.prefix, "prefixed")
    extra = {**record, "name": "extra", "fn": "extra-1.0-0.tar.bz2", "paths_data": {"paths_version": 1, "paths": []}}
    (world.prefix / "conda-meta/extra-1.0-0.json").write_text(json.dumps(extra))
    answer = ended(world.run("audit", "demo"), 3)
    assert ("package-extra", "extra") in errors(answer)
    ended(world.run("repair", "demo"))
    assert told(world.run("audit", "demo")) == []
    assert not list(world.prefix.glob("conda-meta/extra-*"))


def test_it_is_built_again_without_the_network_and_goes_back_to_any_step(world: World) -> None:
    world.profile([STEP, {"name": "tool", "conda": ["tool <2"]}, {"name": "more", "conda": ["tool >=2"]}])
    ended(world.run("create", "demo"))
    assert world.cli.installed() == {"six": "1.0.0", "tool": "2.0"}

    ended(world.run("--offline", "rebuild", "demo"))
    assert world.cli.installed() == {"six": "1.0.0", "tool": "2.0"}
    ended(world.run("--offline", "rollback", "demo", "demo/1.2"))
    assert world.cli.installed() == {"six": "1.0.0", "tool": "1.0"}
    difference = ended(world.run("diff", "demo/1.2", "demo/1.3")).data["changes"]
    assert [(each["name"], each["from"], each["to"]) for each in difference] == [("tool", "1.0", "2.0")]
    ended(world.run("rollback", "demo"))
    assert told(world.run("audit", "demo", "--deep")) == []


def test_an_update_keeps_the_base_of_the_lock(world: World) -> None:
    ended(world.run("create", "demo"))
    world.server.put("forge", packages.prefixed(version="2.0"))
    world.server.put("pypi", Wheel(name="idna", version="1.0"))
    world.profile([STEP, {"name": "idna", "install": ["idna"]}])
    ended(world.run("update", "demo"))
    assert meta(world.prefix, "prefixed")["version"] == "1.0"
    world.profile([STEP], ["prefixed", "tool <2"])
    ended(world.run("update", "demo"))
    assert meta(world.prefix, "prefixed")["version"] == "2.0"


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"packages": ["absent"]}, "unsolvable", "No candidates were found for absent"),
        ({"packages": ["tool >=9"]}, "unsolvable", "tool >=9"),
        ({"channels": ["{forge}/nowhere"]}, "channel-not-found", "404"),
        ({"channels": ["http://127.0.0.1:9/none"]}, "channel-unreachable", "Connection refused"),
    ],
)
def test_what_cannot_be_solved_says_why(world: World, change: Mapping[str, Any], code: str, says: str) -> None:
    document = yaml.safe_load((world.cli.work / "profiles/demo.yaml").read_text())
    text = yaml.safe_dump({**document, "conda": {**document["conda"], **change}})
    (world.cli.work / "profiles/demo.yaml").write_text(text.replace("{forge}", world.server.url("forge").rstrip("/")))
    error = ended(world.run("plan", "demo"), 1).document["error"]
    assert error["code"] == code
    assert says in error["cause"]
    assert not world.cli.link().exists()


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(file="*/prefixed-*", other=True), "hash-mismatch"),
        (Fault(file="*/prefixed-*", status=404), "package-gone"),
    ],
)
def test_a_package_that_is_not_what_its_channel_says(tmp_path: Path, fault: Fault, code: str) -> None:
    channel = Channel(packages=FORGE, faults=(fault,))
    with serve({"forge": channel, "pypi": Index(artefacts=(SIX,))}) as server:
        world = World(server, Cli(root=tmp_path))
        world.profile()
        assert ended(world.run("create", "demo"), 1).document["error"]["code"] == code
        assert not world.cli.link().exists()


@pytest.mark.slow
def test_offline_what_the_cache_lacks_is_named(world: World) -> None:
    ended(world.run("plan", "demo"))
    error = ended(world.run("--offline", "create", "demo"), 1).document["error"]
    assert error["code"] == "not-cached"
    assert PREFIXED.filename in error["cause"]
    world.profile(specs=["tool"])
    assert ended(world.run("--offline", "plan", "demo")).data["base"]


@pytest.mark.slow
def test_a_channel_behind_a_password(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=FORGE, auth="ada:secret-word"), "pypi": Index(artefacts=(SIX,))}) as server:
        world = World(server, Cli(root=tmp_path))
        world.profile()
        error = ended(world.run("create", "demo"), 1).document["error"]
        assert error["code"] == "channel-unauthorized"
        host = server.url("forge").split("/")[2].partition(":")[0]
        (world.cli.user / ".netrc").write_text(f"machine {host} login ada password secret-word\n")
        (world.cli.user / ".netrc").chmod(0o600)
        ended(world.run("create", "demo"))
        for path in [*tmp_path.glob("forge/records/**/*"), *world.prefix.glob("conda-meta/*")]:
            assert path.is_dir() or b"secret-word" not in path.read_bytes(), path


@pytest.mark.slow
def test_mirrors_are_asked_in_order_and_stand_in_no_record(tmp_path: Path) -> None:
    lacking = Channel(packages=(BASE, TOOL), hidden=("*/python-*",))
    with serve(
        {
            "forge": Channel(packages=FORGE),
            "first": lacking,
            "second": Channel(packages=FORGE),
            "pypi": Index(artefacts=(SIX,)),
        }
    ) as server:
        world = World(server, Cli(root=tmp_path))
        world.profile()
        forge, *mirrors = (server.url(name).rstrip("/") for name in ("forge", "first", "second"))
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump({"mirrors": {forge: mirrors}}))
        world.profile(specs=["tool <2"])
        ended(world.run("--config", str(config), "create", "demo"))
        assert meta(world.prefix, "tool")["url"].startswith(forge)
        assert [each.status for each in server.requests("file", "*/python-*", "first")] == [404]
        assert not server.requests(index="forge")


def test_a_path_that_is_too_long_is_refused_before_anything_is_written(world: World) -> None:
    world.cli.root.joinpath("x").mkdir()
    home = world.cli.root / ("long" * 60)
    error = ended(world.run("--home", str(home), "create", "demo"), 1).document["error"]
    assert error["code"] == "prefix-too-long"
    assert not list(home.glob("generations/*/*"))


def test_uninstalling_what_conda_brought_is_refused(world: World) -> None:
    world.profile([{"name": "away", "uninstall": ["tool"]}], ["tool"])
    assert ended(world.run("plan", "demo"), 1).document["error"]["code"] == "conda-owned"


@pytest.mark.slow
def test_a_venv_instead_is_remembered(world: World) -> None:
    answer = ended(world.run("create", "demo", "--backend", "venv"), 2)
    assert answer.document["error"]["code"] == "needs-conda"
    world.profile(specs=[])
    ended(world.run("create", "demo", "--backend", "venv"))
    assert not (world.prefix / "conda-meta").exists()
    ended(world.run("rebuild", "demo", "--fresh"))
    ended(world.run("rebuild", "demo"))
    assert not (world.prefix / "conda-meta").exists()
    assert ended(world.run("show", "demo")).data["outdated"] is False


@pytest.mark.slow
def test_an_environment_that_a_killed_build_left_is_gone_on_with(world: World) -> None:
    world.profile([STEP, {"name": "tool", "conda": ["tool"]}, {"name": "fails", "run": ["false"]}])
    ended(world.run("create", "demo"), 1)
    world.profile([STEP, {"name": "tool", "conda": ["tool"]}])
    contract(world.run("create", "demo"))
    assert world.cli.installed() == {"six": "1.0.0", "tool": "2.0"}


def test_a_machine_file_says_what_packages_may_require(world: World) -> None:
    world.server.put(
        "forge", Package(name="needs-cuda", version="1", depends=("__cuda >=12",)), Package(name="plain", version="1")
    )
    world.profile(specs=["needs-cuda"])
    error = ended(world.run("plan", "demo"), 1).document["error"]
    assert error["code"] == "unsolvable"
    assert "__cuda" in error["cause"]
    machine = world.cli.root / "machine.json"
    ended(world.run("machine", "--save", str(machine)))
    machine.write_text(json.dumps({**json.loads(machine.read_text()), "cuda": "12.8"}))
    assert "needs-cuda" in names(ended(world.run("plan", "demo", "--machine", str(machine))).data["base"])
    assert SUBDIR


@pytest.mark.slow
def test_a_real_python_out_of_a_channel(tmp_path: Path) -> None:
    channel = Channel(packages=(packages.packed_python(), TOOL, packages.pip()))
    with serve({"forge": channel, "pypi": Index(artefacts=(SIX,))}) as server:
        world = World(server, Cli(root=tmp_path))
        world.profile([STEP, {"name": "tool", "conda": ["tool"]}], [])
        ended(world.run("create", "demo"))
        assert world.cli.run("run", "demo", "tool").stdout == "tool 1.0\n"
        question = "import ssl, sqlite3, json, pip, sys; print(sys.prefix, sys.base_prefix)"
        answer = world.cli.run("run", "demo", "--", "python", "-c", question)
        assert answer.stdout.split() == [str(world.prefix)] * 2
        (world.prefix / f"lib/python{PYTHON}/json/decoder.py").unlink()
        (world.prefix / "bin" / f"python{PYTHON}").unlink()
        assert errors(ended(world.run("audit", "demo"), 3)) == {("file-missing", "python")}
        ended(world.run("repair", "demo"))
        assert told(world.run("audit", "demo", "--deep")) == []
        ended(world.run("--offline", "rebuild", "demo", "--fresh"))
        assert world.cli.run("run", "demo", "--", "python", "-c", question).stdout.split() == [str(world.prefix)] * 2
        ended(world.run("create", "demo", "--replace", "--engine", "pip"))
        assert world.cli.installed() == {"six": "1.0.0", "tool": "1.0"}
