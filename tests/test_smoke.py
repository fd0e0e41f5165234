"""`smoke` and the smoke checks that generate: in real environments, with engines that are stand-ins."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit import cards, models
from kit.cards import RTX_3090, V100_A, V100_B, WORKSTATION, Driver
from kit.check import ended, errors
from kit.cli import Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

from envforge.forge import generate_worker

OLD = models.vllm("0.10.0", '"Using %s backend on V1 engine.", "Flash Attention"')
NEW = models.vllm("0.19.1", '"Using %s attention backend out of potential backends: %s.", "FLASH_ATTN", "[]"')
GPU = {"compute_capability": "==7.0"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    artefacts = [models.torch(), models.transformers(), models.transformers("5.0.0"), OLD, NEW]
    with serve({"pypi": Index(artefacts=[*artefacts, Wheel(name="six", version="1.0.0")])}) as started:
        yield started


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    made = cards.driver(tmp_path / "driver")
    made.put(*WORKSTATION)
    return made


def generate(model: str, engine: str = "transformers", **more: object) -> dict[str, Any]:
    return {"engine": engine, "model": model, "prompt": "once upon a time", **more}


def build(cli: Cli, server: Server, *smoke: Mapping[str, Any], name: str = "demo", **more: Any) -> None:
    """Write the profile ``name``: transformers, or what ``install`` says, and these checks."""
    steps = [{"name": "all", "install": more.pop("install", ["torch", "transformers==4.53.3"])}]
    cli.profile(server.url("pypi"), steps, name=name, smoke=[dict(each) for each in smoke], **more)


@pytest.mark.parametrize("version", ["4.53.3", "5.0.0"])
def test_generates_on_the_cpu_and_is_remembered(tmp_path: Path, server: Server, version: str) -> None:
    cli = Cli(root=tmp_path)
    asked = generate(models.model(tmp_path / "model"), dtype="float32", expect="light")
    build(cli, server, {"generate": asked, "device": "cpu", "name": "it speaks"},
          install=["torch", f"transformers=={version}"])  # fmt: skip
    (made,) = ended(cli.run("create", "demo")).data["smoke"]
    assert (made["ok"], made["skipped"], made["ending"]) == (True, None, "exit status 0")
    generated = made["generated"]
    assert (generated["text"], generated["tokens"]) == ("then there was light", 4)
    assert (generated["device"], generated["attention"]) == ("cpu", "sdpa")
    assert generated["memory"] > 1 << 20
    assert generated["tokens_per_second"] > 0
    assert generated["versions"] == {"transformers": version, "torch": "2.7.1"}

    again = ended(cli.run("smoke", "demo"))
    (one,) = again.data["environments"]
    assert (one["environment"], one["generation"], one["cards"]) == ("demo", 1, [])
    assert one["checks"][0]["generated"]["text"] == "then there was light"
    assert again.data["compared"] == []
    shown = ended(cli.run("show", "demo")).data
    (smoked,) = shown["smoked"]
    assert (smoked["card"], smoked["snapshot"], smoked["checks"][0]["name"]) == (None, "demo/1.1", "it speaks")
    assert shown["smoke"].startswith("all 1 passed, ")


@pytest.mark.parametrize(
    ("does", "expect", "ending"),
    [
        ({"does": "die"}, None, "killed by SIGSEGV"),
        ({"does": "hang"}, None, "ended after its time limit"),
        ({"does": "raise"}, None, "exit status 1"),
        ({"does": "leave"}, None, "exit status 0, and no answer"),
        ({"says": " "}, None, "it generated nothing"),
        ({"says": "and then night"}, "light", "`light` is not in what it generated: `and then night`"),
    ],
)
def test_what_fails(
    tmp_path: Path, home_with_transformers: Cli, does: dict[str, str], expect: str | None, ending: str
) -> None:
    """The environment is built once; the records say for each case what is to be checked."""
    cli = home_with_transformers
    asked = generate(models.model(tmp_path / "model", **does), **({"expect": expect} if expect else {}))
    recorded(cli, {"generate": asked, "device": "cpu", "name": "it speaks", "timeout": 5.0})
    answer = ended(cli.run("smoke", "demo"), 3)
    assert errors(answer) == {("smoke-failed", "it speaks")}
    (finding,) = answer.document["findings"]
    assert finding["evidence"]["ending"] == ending
    if does.get("does") == "raise":
        assert "no kernel image is available" in finding["evidence"]["tail"]
    assert "failed: it speaks, " in ended(cli.run("show", "demo")).data["smoke"]


@pytest.fixture(scope="module")
def home_with_transformers(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Cli:
    cli = Cli(root=tmp_path_factory.mktemp("built"))
    build(cli, server, {"import": ["transformers"]})
    ended(cli.run("create", "demo"))
    return cli


def recorded(cli: Cli, *smoke: Mapping[str, Any]) -> None:
    """Put other checks into the profile that the environment was built from."""
    import yaml

    path = cli.home / "records/demo/1/profile.yaml"
    document = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**document, "smoke": [dict(each) for each in smoke]}))


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("/nowhere/model", (), "the model `/nowhere/model` is not there"),
        ("{empty}", (), "holds no model: there is no `config.json` in it"),
        ("owner/name", ("--offline",), "the model `owner/name` cannot be had: no owner/name: offline"),
        ("owner/name", (), "the model `owner/name` cannot be had: no owner/name: not found on the hub"),
    ],
)
def test_a_model_that_is_not_there(
    tmp_path: Path, home_with_transformers: Cli, model: str, options: tuple[str, ...], says: str
) -> None:
    cli = home_with_transformers
    recorded(cli, {"generate": generate(model.format(empty=tmp_path)), "device": "cpu"})
    answer = ended(cli.run(*options, "smoke", "demo"), 3)
    (finding,) = answer.document["findings"]
    assert finding["evidence"]["ending"].endswith(says)
    assert "model" in finding["remedy"]
    assert "Traceback" not in finding["evidence"]["tail"]


@pytest.mark.slow
def test_without_a_card_what_needs_one_is_skipped(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path)
    asked = generate(models.model(tmp_path / "model"), "vllm")
    marked = {"python": "raise SystemExit(1)", "device": "cuda", "name": "marked"}
    build(cli, server, {"import": ["vllm"]}, {"generate": asked, "name": "it speaks"}, marked, install=["vllm==0.10.0"])
    answer = ended(cli.run("create", "demo"))
    results = {each["name"]: (each["ok"], each["skipped"]) for each in answer.data["smoke"]}
    none = "no GPU was found"
    assert results == {"import vllm": (True, None), "it speaks": (False, none), "marked": (False, none)}
    assert "smoke check it speaks: skipped, no GPU was found" in answer.stderr
    assert "1 passed, skipped: it speaks, marked" in ended(cli.run("show", "demo")).data["smoke"]
    assert [each["skipped"] for each in ended(cli.run("smoke", "demo")).data["environments"][0]["checks"]] == [
        None,
        none,
        none,
    ]


@pytest.mark.slow
def test_vllm_on_the_cards_that_fit(tmp_path: Path, server: Server, driver: Driver) -> None:
    cli = Cli(root=tmp_path, variables=driver.variables)
    asked = generate(models.model(tmp_path / "model", holds=32768), "vllm", dtype="float16")
    build(cli, server, {"generate": asked, "name": "it speaks"}, install=["vllm==0.10.0"], gpu=GPU)
    (made,) = ended(cli.run("create", "demo")).data["smoke"]
    generated = made["generated"]
    assert generated["text"] == "then there was light 2048 float16"
    assert (generated["attention"], generated["memory"]) == ("Flash Attention", 3 << 30)
    assert generated["device"] == "Tesla V100, seen as 1,2"
    assert generated["versions"] == {"vllm": "0.10.0", "torch": "2.7.1"}

    other = ended(cli.run("smoke", "demo", "--gpu", "2")).data["environments"][0]
    assert other["cards"] == ["GPU 2 Tesla V100-PCIE-16GB"]
    assert other["checks"][0]["generated"]["device"] == "Tesla V100, seen as 2"
    shown = ended(cli.run("show", "demo")).data
    assert [each["card"] for each in shown["smoked"]] == [V100_B.uuid, V100_A.uuid]

    hidden = ended(cli.run("smoke", "demo", "--gpu", "none")).data["environments"][0]["checks"][0]
    assert hidden["skipped"] == "`--gpu none` hides every GPU"
    assert ended(cli.run("smoke", "demo", "--gpu", "7"), 1).document["error"]["code"] == "gpu-not-there"
    chosen = replace(cli, variables={**cli.variables, "CUDA_VISIBLE_DEVICES": "2"})
    assert ended(chosen.run("smoke", "demo")).data["environments"][0]["cards"] == ["GPU 2 Tesla V100-PCIE-16GB"]
    driver.put(RTX_3090)
    unfit = ended(cli.run("smoke", "demo")).data["environments"][0]["checks"][0]
    assert unfit["skipped"] == "compute capability 8.6, the profile wants ==7.0"


@pytest.mark.slow
def test_a_model_that_the_profile_names(tmp_path: Path, server: Server) -> None:
    """While it is not fetched a build cannot ask for it, since fetching takes an environment; `smoke` can."""
    cli = Cli(root=tmp_path)
    ours = {"name": "ours", "from": "path", "path": models.model(tmp_path / "ours")}
    named = [ours, {"name": "owner/name", "from": "huggingface"}]
    here = {"generate": generate("ours"), "device": "cpu", "name": "here"}
    later = {"generate": generate("owner/name"), "device": "cpu", "name": "later"}
    build(cli, server, here, later, models=named)
    one, other = ended(cli.run("create", "demo")).data["smoke"]
    assert (one["ok"], one["generated"]["text"]) == (True, "then there was light")
    assert (other["ok"], other["skipped"]) == (False, "the model `owner/name` is not fetched yet")
    answer = ended(cli.run("smoke", "demo"), 3)
    assert errors(answer) == {("smoke-failed", "later")}
    assert "envforge models" in answer.document["findings"][0]["remedy"]


def test_two_environments_side_by_side(tmp_path: Path, server: Server, driver: Driver) -> None:
    cli = Cli(root=tmp_path, variables=driver.variables)
    asked = generate(models.model(tmp_path / "model"), "vllm")
    build(cli, server, {"generate": asked}, name="old", install=["vllm==0.10.0"])
    build(cli, server, {"generate": asked}, name="new", install=["vllm==0.19.1"])
    for name in ("old", "new"):
        ended(cli.run("create", name))
    answer = ended(cli.run("smoke", "old", "new", "--gpu", "V100"))
    (compared,) = answer.data["compared"]
    assert (compared["model"], compared["equal"]) == (asked["model"], True)
    told = [(each["environment"], each["generated"]["attention"]) for each in compared["answers"]]
    assert told == [("old", "Flash Attention"), ("new", "FLASH_ATTN")]
    (Path(asked["model"]) / "config.json").write_text(json.dumps({"says": "", "does": "raise"}))
    broken = ended(cli.run("smoke", "old", "new", "--gpu", "V100"), 3)
    assert broken.data["compared"] == []
    assert [each["message"].partition(":")[0] for each in broken.document["findings"]] == ["old", "new"]


def test_a_check_may_not_spoil_what_it_proves(home_with_transformers: Cli) -> None:
    cli = home_with_transformers
    remove = "import torch, os; os.remove(torch.__file__)"
    recorded(cli, {"python": remove, "name": "remover"})
    answer = ended(cli.run("smoke", "demo"), 3)
    assert errors(answer) == {("file-missing", "torch")}
    ended(cli.run("repair", "demo"))
    assert (cli.site() / "torch/__init__.py").exists()


@pytest.mark.slow
def test_a_check_that_writes_into_shared_files_names_who_has_them_too(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path)
    build(cli, server, {"import": ["six"]}, install=["six"])
    for name in ("demo", "twin"):
        ended(cli.run("create", "demo", "--name", name))
    recorded(cli, {"python": "import six; open(six.__file__, 'a').write('#')", "name": "writer"})
    answer = ended(cli.run("smoke", "demo"), 3)
    (finding,) = answer.document["findings"]
    assert (finding["id"], finding["subject"]) == ("file-modified", "six")
    assert finding["evidence"]["shared_with"] == ["twin/1"]
    assert "envforge repair demo" in finding["remedy"]


def test_nothing_to_check(home_with_transformers: Cli) -> None:
    recorded(home_with_transformers)
    assert ended(home_with_transformers.run("smoke", "demo"), 2).document["error"]["code"] == "no-smoke-checks"
    assert ended(home_with_transformers.run("smoke", "dem"), 2).document["error"]["code"] == "no-such-environment"


def test_the_program_is_one_for_old_pythons() -> None:
    source = Path(str(generate_worker.__file__)).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "from __future__ import annotations" in source
    assert not any(name.startswith("envforge") for name in names)
