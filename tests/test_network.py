"""The main job on real packages of the default index; run with `-m network`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kit.check import contract, errors
from kit.cli import PYTHON, Answer, Cli, finish
from kit.hub import Hub, serve

pytestmark = pytest.mark.network


def done(answer: Answer, exit_status: int = 0) -> Answer:
    contract(answer)
    assert answer.exit == exit_status, str(answer)
    return answer


def test_quickstart_shows_a_guard_that_opens_and_heals(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    built = done(cli.run("create", "quickstart")).data
    hub, pin = built["steps"][1:]
    assert [finding["id"] for finding in hub["opens"]].count("hold-violated") == 1
    assert any("huggingface-hub" in str(change["because"]) for change in hub["changes"] if change["name"] == "click")
    assert "hold-violated" in pin["heals"]
    assert built["differs"] == []
    assert cli.installed("quickstart")["click"].startswith("8.1.")
    again = done(cli.run("--offline", "create", "quickstart", "--name", "second")).data
    assert [step["changes"] for step in again["steps"]] == [step["changes"] for step in built["steps"]]
    logs = (cli.home / "records/second/1/logs").glob("*.log")
    assert not any("Prepared" in log.read_text() for log in logs), "a file was fetched or unpacked a second time"


def test_an_index_is_substituted_and_its_loss_is_told(tmp_path: Path) -> None:
    """xinv100 in small: one index is out of reach, the default one stands in, a hold opens and heals."""
    cli = Cli(root=tmp_path, variables={"ENVFORGE_SUBSTITUTES": '{"packaging-cu126": "pypi"}'})
    profile = {
        "schema": 1,
        "name": "small",
        "python": PYTHON,
        "indexes": [
            {"name": "packaging-cu126", "url": "https://packages.invalid/whl/cu126", "packages": ["packaging"]},
            {"name": "pypi"},
        ],
        "steps": [
            {"name": "base", "install": ["packaging>=23", "docopt==0.6.2"]},
            {"name": "more", "install": ["pluggy"]},
            {"name": "late", "pin": ["packaging<24"]},
        ],
        "guards": [{"hold": "packaging<24"}, {"keep": ["docopt"]}],
        "smoke": [{"import": ["packaging", "docopt", "pluggy"]}],
    }
    (cli.work / "profiles/small.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
    plan = done(cli.run("plan", "small")).data
    assert "+cu126" in plan["lost"]["packaging"]
    assert plan["steps"][0]["builds"] == ["docopt-0.6.2.tar.gz"]
    built = done(cli.run("create", "small")).data
    assert [finding["id"] for finding in built["steps"][0]["opens"]] == ["hold-violated"]
    assert built["steps"][2]["heals"] == ["hold-violated"]
    assert built["steps"][0]["changes"] == plan["steps"][0]["changes"]


@pytest.mark.slow
def test_a_model_made_on_the_spot_generates(tmp_path: Path) -> None:
    """The real torch and transformers, several gigabytes of them, on the CPU."""
    cli = Cli(root=tmp_path)
    model = tmp_path / "model"
    maker = Path(__file__).parent / "kit/tiny_model.py"
    asked = {"engine": "transformers", "model": str(model), "prompt": "once upon a time", "dtype": "float32"}
    profile = {
        "schema": 1,
        "name": "speaking",
        "python": PYTHON,
        "steps": [
            {"name": "all", "install": ["torch", "transformers"]},
            {"name": "model", "run": ["python", str(maker), str(model)]},
        ],
        "smoke": [
            {"name": "cpu", "generate": asked, "device": "cpu"},
            {"name": "other", "generate": {**asked, "expect": "words that it does not know"}, "device": "cpu"},
            {"name": "card", "generate": asked},
        ],
    }
    (cli.work / "profiles/speaking.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
    child = cli.start("create", "speaking")
    out, err = child.communicate(timeout=1800)
    built = done(Answer(("create", "speaking"), child.returncode, out, err), 3)
    ran, other, card = built.data["smoke"]
    assert ran["ok"], str(built)
    assert ran["generated"]["text"] == other["generated"]["text"] != ""
    assert ran["generated"]["attention"] == "sdpa"
    assert ran["generated"]["memory"] > 100 << 20
    assert "is not in what it generated" in other["ending"]
    assert card["skipped"] == "no GPU was found"
    assert errors(built) == {("smoke-failed", "other")}


@pytest.mark.parametrize("huggingface", ["huggingface_hub", "huggingface_hub<1"])
def test_the_hubs_own_libraries_fetch_go_on_after_a_kill_and_bring_back_what_was_damaged(
    huggingface: str, tmp_path: Path
) -> None:
    weights = bytes(range(256)) * 200_000  # more than a library reads before it writes
    files = {"config.json": b"{}", "sub/model.safetensors": weights}
    hub = Hub(models={"Qwen/tiny": dict(files), "Qwen/other": dict(files)}, held="sub/model.safetensors")
    profile = {
        "schema": 1,
        "name": "hubs",
        "python": PYTHON,
        "steps": [{"name": "hubs", "install": [huggingface, "modelscope"]}],
        "models": [{"name": "Qwen/tiny", "from": "huggingface"}, {"name": "Qwen/other", "from": "modelscope"}],
    }
    with serve(hub) as url:
        cli = Cli(
            root=tmp_path, variables={"ENVFORGE_MIRRORS": json.dumps({"huggingface": [url], "modelscope": [url]})}
        )
        (cli.work / "profiles/hubs.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
        done(cli.run("create", "hubs"))
        child = cli.start("models", "hubs", "--fetch")
        assert hub.holding.wait(120)
        child.kill()
        finish(child)
        hub.held = None
        models = done(cli.run("models", "hubs", "--fetch")).data["models"]
        for each in models:
            assert {path: Path(each["path"], path).read_bytes() for path in files} == files
            Path(each["path"], "sub/model.safetensors").write_bytes(b"?" + weights[1:])
            Path(each["path"], "config.json").unlink()
        done(cli.run("models", "hubs", "--check"), 3)
        done(cli.run("models", "hubs", "--check", "--fetch"))
        done(cli.run("models", "hubs", "--check"))
    assert all(Path(each["path"], "sub/model.safetensors").read_bytes() == weights for each in models)
    assert not list((tmp_path / "user").rglob("*.safetensors")), "nothing lies in a cache of the user's"
