"""Models by the hubs' libraries in a real environment, from a hub on loopback: whole, resumed, checked, shared."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from kit.check import ended
from kit.cli import Answer, Cli, finish
from kit.hub import COMMIT, Hub, serve
from kit.hub_libraries import HUGGINGFACE, MODELSCOPE
from kit.index import Index
from kit.index import serve as serve_index
from kit.mounts import mounted
from kit.wheels import Wheel, noise

WEIGHTS = noise(200_000).encode()
FILES = {"config.json": b"{}", "weights/model.safetensors": WEIGHTS}
LARGE = "weights/model.safetensors"
TOKEN = "hf_very_secret"  # noqa: S105 - no password, but looked for


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an environment that has both libraries and three models, and one without any library."""
    root = tmp_path_factory.mktemp("models")
    cli = Cli(root=root)
    own = root / "own"
    own.mkdir()
    (own / "config.json").write_bytes(b"{}")
    models: list[dict[str, str]] = [
        {"name": "Qwen/tiny", "from": "huggingface"},
        {"name": "Qwen/other", "from": "modelscope", "revision": "master"},
    ]
    show = {"name": "show", "run": ["python", "-c", "import os; print('step', os.environ['ENVFORGE_MODELS'])"]}
    check = {"name": "folder", "python": "import os; assert os.environ['ENVFORGE_MODELS'].endswith('/models')"}
    with serve_index({"pypi": Index(artefacts=[HUGGINGFACE, MODELSCOPE, Wheel(name="six", version="1.0")])}) as server:
        url = server.url("pypi")
        steps = [{"name": "hubs", "install": ["huggingface_hub", "modelscope"]}, show]
        cli.profile(
            url, steps, models=[*models, {"name": "own", "from": "path", "path": str(own)}], smoke=[check]
        )  # fmt: skip
        cli.profile(url, [{"name": "six", "install": ["six"]}], name="bare", models=models[:1])
        told = ended(cli.run("create", "demo")).stderr
        assert "not here yet: the models `Qwen/tiny`, `Qwen/other`; `envforge models demo --fetch` fetches them" in told
        ended(cli.run("create", "bare"))
        ended(cli.run("create", "bare", "--name", "gone"))
    return root


@pytest.fixture(name="root")
def _root(made: Path) -> Path:
    """The same home, without models."""
    shutil.rmtree(made / "forge" / "models", ignore_errors=True)
    return made


@pytest.fixture(name="hub")
def _hub() -> Hub:
    return Hub(models={"Qwen/tiny": dict(FILES), "Qwen/other": dict(FILES)})


@pytest.fixture(name="cli")
def _cli(root: Path, hub: Hub) -> Iterator[Cli]:
    with serve(hub) as url:
        yield Cli(root=root, variables=mirrors(url))


def mirrors(*urls: str, **more: str) -> dict[str, str]:
    return {"ENVFORGE_MIRRORS": json.dumps({"huggingface": [*urls], "modelscope": [*urls]}), **more}


def conditions(answer: Answer) -> dict[str, tuple[str, bool]]:
    return {each["name"]: (each["condition"], each["fetched"]) for each in answer.data["models"]}


def failed(answer: Answer) -> dict[str, Any]:
    ended(answer, 1)
    return dict(answer.document["error"])


def folder(cli: Cli, name: str = "huggingface/Qwen/tiny/main") -> Path:
    return cli.home / "models" / name


def test_what_is_missing_is_fetched_whole_and_only_once(cli: Cli, hub: Hub) -> None:
    before = ended(cli.run("models", "demo"))
    assert conditions(before) == {
        "Qwen/tiny": ("absent", False),
        "Qwen/other": ("absent", False),
        "own": ("whole", False),
    }
    after = ended(cli.run("models", "demo", "--fetch"))
    assert conditions(after) == {"Qwen/tiny": ("whole", True), "Qwen/other": ("whole", True), "own": ("whole", False)}
    tiny, other, own = after.data["models"]
    assert (tiny["commit"], tiny["path"]) == (COMMIT, str(folder(cli)))
    assert (other["commit"], other["path"]) == (None, str(folder(cli, "modelscope/Qwen/other/master")))
    assert own["path"] == str(cli.root / "own")
    assert tiny["bytes"] >= len(WEIGHTS)
    for each in (tiny, other):
        assert {path: Path(each["path"], path).read_bytes() for path in FILES} == FILES
    hub.requests.clear()
    again = ended(cli.run("models", "demo", "--fetch", "--check"))
    assert conditions(again)["Qwen/tiny"] == ("whole", False)
    assert hub.requests == []
    assert ended(cli.run("models", "bare")).data["models"][0]["condition"] == "whole", "environments share models"
    assert [path.name for path in (cli.home / "models").iterdir() if path.is_dir() and any(path.iterdir())] != []
    assert not list((cli.home / "models" / ".scratch").iterdir())


def test_what_runs_in_the_environment_is_told_where_models_lie(cli: Cli) -> None:
    ran = cli.run("run", "demo", "python", "-c", "import os; print(os.environ['ENVFORGE_MODELS'])")
    assert (ran.exit, ran.stdout.strip()) == (0, str(cli.home / "models"))
    logs = "".join(path.read_text() for path in (cli.home / "records/demo/1/logs").glob("*show*"))
    assert f"step {cli.home / 'models'}" in logs


def test_killed_midway_the_next_one_goes_on_and_nobody_sees_half_of_it(cli: Cli, hub: Hub) -> None:
    hub.held = LARGE
    child = cli.start("models", "demo", "--fetch")
    assert hub.holding.wait(60)
    part = folder(cli).with_name(".main.part")
    half = len(WEIGHTS) // 2
    while sum(path.stat().st_size for path in part.rglob("*.incomplete")) < half:
        assert child.poll() is None
        sleep(0.02)
    child.send_signal(signal.SIGKILL)
    assert finish(child).exit != 0
    assert not folder(cli).exists()
    assert conditions(ended(cli.run("models", "demo")))["Qwen/tiny"] == ("partial", False)
    hub.held = None
    hub.requests.clear()
    assert conditions(ended(cli.run("models", "demo", "--fetch")))["Qwen/tiny"] == ("whole", True)
    assert hub.fetched(LARGE)[0] == f"bytes={half}-"
    assert (folder(cli) / LARGE).read_bytes() == WEIGHTS
    assert not part.exists()


@pytest.mark.slow
def test_a_changed_file_is_a_finding_and_fetched_again(cli: Cli, hub: Hub) -> None:
    ended(cli.run("models", "demo", "--fetch"))
    changed = folder(cli) / LARGE
    changed.write_bytes(b"?" + WEIGHTS[1:])
    (folder(cli, "modelscope/Qwen/other/master") / "config.json").unlink()
    assert conditions(ended(cli.run("models", "demo"))) == {
        "Qwen/tiny": ("whole", False),  # of the same size: only hashing tells
        "Qwen/other": ("damaged", False),
        "own": ("whole", False),
    }
    found = ended(cli.run("models", "demo", "--check"), 3)
    told = {(each["id"], each["subject"]): each["evidence"] for each in found.document["findings"]}
    assert told == {
        ("file-modified", "Qwen/tiny"): {"paths": [LARGE]},
        ("file-missing", "Qwen/other"): {"paths": ["config.json"]},
    }
    hub.requests.clear()
    mended = ended(cli.run("models", "demo", "--check", "--fetch"))
    assert conditions(mended)["Qwen/tiny"] == ("whole", True)
    assert changed.read_bytes() == WEIGHTS
    assert len(hub.fetched("config.json")) == 1, "only what is gone"
    ended(cli.run("models", "demo", "--check"))


@pytest.mark.parametrize("path", [LARGE, "config.json"])
def test_files_that_are_not_what_the_hub_lists_are_refused(path: str, cli: Cli, hub: Hub) -> None:
    hub.tampered = path
    error = failed(cli.run("models", "demo", "--fetch"))
    assert (error["code"], error["cause"]) == ("hash-mismatch", path)
    assert not folder(cli).exists()
    hub.tampered = None
    ended(cli.run("models", "demo", "--fetch"))


def test_a_model_or_revision_that_is_not_there(cli: Cli, hub: Hub) -> None:
    hub.revisions = ("master",)
    assert failed(cli.run("models", "demo", "--fetch"))["code"] == "model-not-found"
    hub.revisions = ("main", "master", COMMIT)
    other = hub.models.pop("Qwen/other")
    error = failed(cli.run("models", "demo", "--fetch"))
    assert error["code"] == "model-not-found"
    assert "`Qwen/other` in the revision `master`" in error["message"]
    hub.models["Qwen/other"] = other
    (cli.root / "own").rename(cli.root / "away")
    error = failed(cli.run("models", "demo", "--fetch"))
    (cli.root / "away").rename(cli.root / "own")
    assert error["code"] == "model-not-found"
    assert str(cli.root / "own") in error["message"]


def test_a_gated_model_needs_the_token_which_is_written_nowhere(root: Path, hub: Hub) -> None:
    hub.token = TOKEN
    with serve(hub) as url:
        error = failed(Cli(root=root, variables=mirrors(url)).run("models", "demo", "--fetch"))
        assert error["code"] == "model-unauthorized"
        assert "HF_TOKEN" in error["hint"]
        tokens = {"HF_TOKEN": TOKEN, "MODELSCOPE_API_TOKEN": TOKEN}
        answer = ended(Cli(root=root, variables=mirrors(url, **tokens)).run("models", "demo", "--fetch"))
    assert TOKEN not in answer.text
    written = [path for path in (root / "forge").rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert written == []


def test_a_hub_that_gives_no_answer_and_the_mirror_after_it(root: Path, hub: Hub) -> None:
    nobody = "http://127.0.0.1:9"
    error = failed(Cli(root=root, variables=mirrors(nobody)).run("models", "demo", "--fetch"))
    assert error["code"] == "hub-unreachable"
    assert "mirrors" in error["hint"]
    with serve(hub) as url:
        ended(Cli(root=root, variables=mirrors(nobody, url)).run("models", "demo", "--fetch"))
    hub.status = 503
    shutil.rmtree(root / "forge" / "models")
    with serve(hub) as url:
        assert failed(Cli(root=root, variables=mirrors(url)).run("models", "demo", "--fetch"))["code"] == (
            "hub-unreachable"
        )


@pytest.mark.slow
def test_modelscope_is_asked_without_the_hosts_proxy_and_hugging_face_with_it(root: Path, hub: Hub) -> None:
    dead = {"http_proxy": "http://127.0.0.1:9"}
    with serve(hub) as url:
        ended(Cli(root=root, variables=mirrors(url)).run("models", "demo", "--fetch"))
        shutil.rmtree(root / "forge/models/modelscope")
        ended(Cli(root=root, variables=mirrors(url, **dead)).run("models", "demo", "--fetch"))
        shutil.rmtree(root / "forge/models/huggingface")
        error = failed(Cli(root=root, variables=mirrors(url, **dead)).run("models", "demo", "--fetch"))
        assert error["code"] == "hub-unreachable"
        shutil.rmtree(root / "forge/models/modelscope")
        ended(Cli(root=root, variables=mirrors(url)).run("models", "bare", "--fetch"), 1)
        ours = {"ENVFORGE_PROXY": "http://127.0.0.1:9"}
        assert failed(Cli(root=root, variables=mirrors(url, **ours)).run("models", "demo", "--fetch"))["code"] == (
            "hub-unreachable"
        )


def test_the_library_is_not_in_the_environment(cli: Cli) -> None:
    error = failed(cli.run("models", "bare", "--fetch"))
    assert error["code"] == "hub-library-missing"
    assert "add `huggingface_hub`" in error["hint"]


def test_offline_nothing_is_fetched(cli: Cli, hub: Hub) -> None:
    assert failed(cli.run("--offline", "models", "demo", "--fetch"))["code"] == "not-cached"
    assert hub.requests == []
    ended(cli.run("models", "demo", "--fetch"))
    ended(cli.run("--offline", "models", "demo", "--fetch"))


def test_a_disk_without_room_is_told_before_anything_is_fetched(cli: Cli, hub: Hub) -> None:
    hub.models["Qwen/tiny"][LARGE] = WEIGHTS * 20
    with mounted(cli.home / "models", "size=2M"):
        error = failed(cli.run("models", "demo", "--fetch"))
        assert (error["code"], "are still to fetch" in error["cause"]) == ("disk-full", True)
        assert hub.fetched(LARGE) == []


def test_a_disk_that_is_full_before_all_is_there(cli: Cli, hub: Hub) -> None:
    # Each takes a page, which no listing says.
    hub.models["Qwen/tiny"] = {f"{number}.txt": b"x" for number in range(600)}
    with mounted(cli.home / "models", "size=2M"):
        error = failed(cli.run("models", "demo", "--fetch"))
        assert (error["code"], "are still to fetch" in error["cause"]) == ("disk-full", False)


def test_prune_takes_what_no_profile_names_and_remove_leaves_it(cli: Cli, hub: Hub) -> None:
    ended(cli.run("models", "demo", "--fetch"))
    foreign = cli.home / "models/huggingface/Qwen/mine"
    foreign.mkdir()
    kept = [each for each in ended(cli.run("prune")).data["removed"] if each["kind"] == "model"]
    assert kept == []
    old = folder(cli, "huggingface/Qwen/tiny/old")
    shutil.copytree(folder(cli), old)
    shutil.copy(folder(cli).with_name(".main.json"), old.with_name(".old.json"))
    (folder(cli, "huggingface/gone/.v1.part")).mkdir(parents=True)
    planned = [each for each in ended(cli.run("prune", "--dry-run")).data["removed"] if each["kind"] == "model"]
    assert {each["what"] for each in planned} == {"huggingface/Qwen/tiny/old", "huggingface/gone/v1"}
    assert next(each["bytes"] for each in planned if each["what"].endswith("old")) >= len(WEIGHTS)
    assert old.exists()
    ended(cli.run("prune"))
    ended(cli.run("remove", "gone"))
    assert sorted(path.name for path in folder(cli).parent.iterdir()) == [".main.json", "main"]
    assert foreign.exists()
    assert not folder(cli, "huggingface/gone/.v1.part").exists()


@pytest.mark.slow
def test_a_bundle_brings_the_models_along(tmp_path: Path, hub: Hub) -> None:
    here, there = Cli(root=tmp_path / "here"), Cli(root=tmp_path / "there")
    file = str(tmp_path / "demo.tar")
    with serve_index({"pypi": Index(artefacts=[HUGGINGFACE])}) as server, serve(hub) as url:
        online = Cli(root=here.root, variables=mirrors(url))
        steps = [{"name": "hub", "install": ["huggingface_hub"]}]
        online.profile(server.url("pypi"), steps, models=[{"name": "Qwen/tiny", "from": "huggingface"}])
        ended(online.run("create", "demo"))
        error = ended(online.run("bundle", "demo", "-o", file, "--models"), 1).document["error"]
        assert (error["code"], error["hint"]) == (
            "model-missing",
            "`envforge models demo --fetch` fetches what is missing",
        )
        ended(online.run("models", "demo", "--fetch"))
        assert ended(online.run("bundle", "demo", "-o", file, "--models")).data["models"] == 1
    ended(there.run("create", "--bundle", file))
    answer = ended(there.run("models", "demo", "--check"))
    assert conditions(answer) == {"Qwen/tiny": ("whole", False)}
    assert (there.home / "models/huggingface/Qwen/tiny/main" / LARGE).read_bytes() == WEIGHTS
