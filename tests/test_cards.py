"""One machine with a 3090 and two V100: profiles, plan, create, run and audit, end to end, over a driver of the kit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import cards
from kit.cards import RTX_3090, V100_A, V100_B, WORKSTATION, Driver
from kit.check import ended, errors
from kit.cli import Answer, Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

VOLTA = {"compute_capability": "==7.0", "driver": ">=525.60.13", "memory_gib": ">=15"}
TORCH = [Wheel(name="torch", version="2.7.1+cu126"), Wheel(name="torch", version="2.11.0+cu130")]
SEEN = "import os; print(os.environ.get('CUDA_DEVICE_ORDER'), os.environ.get('CUDA_VISIBLE_DEVICES'))"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Cli, Server, Driver]]:
    driver = cards.driver(tmp_path / "driver")
    driver.put(*WORKSTATION)
    with serve({"pypi": Index(artefacts=[*TORCH])}) as server:
        cli = Cli(root=tmp_path / "cli", variables=driver.variables)
        profile(cli, server)
        yield cli, server, driver


def profile(cli: Cli, server: Server, version: str = "2.7.1", gpu: Any = VOLTA, **more: Any) -> None:
    steps = [{"name": "torch", "install": [f"torch=={version}"]}]
    cli.profile(server.url("pypi"), steps, gpu=gpu, **more)


def told(answer: Answer, name: str) -> list[tuple[str, str]]:
    return [(each["severity"], each["subject"]) for each in answer.document["findings"] if each["id"] == name]


def test_from_profiles_to_audit(house: tuple[Cli, Server, Driver]) -> None:
    cli, _, driver = house
    entries = {each["name"]: each for each in ended(cli.run("profiles")).data["profiles"]}
    assert [(fit["index"], fit["fits"], fit["reason"]) for fit in entries["demo"]["cards"]] == [
        (0, False, "compute capability 8.6, the profile wants ==7.0"),
        (1, True, None),
        (2, True, None),
    ]
    planned = ended(cli.run("plan", "demo"))
    assert [f"GPU {index} {V100_A.name}" for index in (1, 2)] == planned.data["cards"]
    assert told(planned, "driver-too-old") == [("info", "torch")]
    ended(cli.run("create", "demo"))
    assert cli.run("run", "demo", "--", "python", "-c", SEEN).stdout == "PCI_BUS_ID 1,2\n"
    assert cli.run("run", "demo", "--gpu", "GPU-v100b", "--", "python", "-c", SEEN).stdout == "PCI_BUS_ID 2\n"
    clean = ended(cli.run("audit", "demo"))
    assert told(clean, "machine-changed") == []
    driver.put(RTX_3090, V100_B)
    assert cli.run("run", "demo", "--", "python", "-c", SEEN).stdout == "PCI_BUS_ID 1\n"
    assert told(ended(cli.run("audit", "demo")), "machine-changed") == [("info", "gpu")]
    driver.put(RTX_3090, driver="535.104.05", cuda=12020)
    gone = ended(cli.run("audit", "demo"))
    assert told(gone, "machine-changed") == [("warning", "driver"), ("warning", "gpu")]


@pytest.mark.slow
def test_a_saved_machine_is_judged_elsewhere(house: tuple[Cli, Server, Driver]) -> None:
    cli, _, driver = house
    ended(cli.run("machine", "--save", "box.json"))
    driver.put()
    assert json.loads((cli.work / "box.json").read_text(encoding="utf-8"))["asked"] == [
        {"who": "NVML", "status": "found"}
    ]
    there = ended(cli.run("profiles", "--machine", "box.json")).data
    (entry,) = [each for each in there["profiles"] if each["name"] == "demo"]
    assert [fit["fits"] for fit in entry["cards"]] == [False, True, True]
    assert len(ended(cli.run("plan", "demo", "--machine", "box.json")).data["cards"]) == 2
    here = ended(cli.run("profiles")).data
    (entry,) = [each for each in here["profiles"] if each["name"] == "demo"]
    assert (entry["fits"], here["gpus_status"]) == (False, "absent")


@pytest.mark.slow
def test_cards_that_do_not_fit_are_refused_unless_any_machine_will_do(house: tuple[Cli, Server, Driver]) -> None:
    cli, _, driver = house
    driver.put(RTX_3090)
    assert told(ended(cli.run("plan", "demo")), "gpu-mismatch") == [("warning", "demo")]
    assert errors(ended(cli.run("create", "demo"), 3)) == {("gpu-mismatch", "demo")}
    assert not cli.link().exists()
    ended(cli.run("create", "demo", "--any-machine"))
    assert told(ended(cli.run("audit", "demo")), "machine-changed") == []


@pytest.mark.slow
@pytest.mark.parametrize("gpu", [VOLTA, None])
def test_a_driver_too_old_is_refused_before_anything_is_built(house: tuple[Cli, Server, Driver], gpu: object) -> None:
    cli, server, driver = house
    profile(cli, server, "2.11.0", gpu)
    for command in ("plan", "create"):
        answer = ended(cli.run(command, "demo"), 3)
        assert errors(answer) == {("driver-too-old", "torch")}
    assert not cli.link().exists()
    built = ended(cli.run("create", "demo", "--any-machine"))
    assert told(built, "driver-too-old") == [("warning", "torch")]
    assert errors(ended(cli.run("audit", "demo"), 3)) == {("driver-too-old", "torch")}
    driver.put(*WORKSTATION, driver="580.65.06", cuda=13000)
    assert told(ended(cli.run("audit", "demo")), "driver-too-old") == []


@pytest.mark.slow
def test_the_profile_may_ignore_the_driver(house: tuple[Cli, Server, Driver]) -> None:
    cli, server, _ = house
    profile(cli, server, "2.11.0", ignore=[{"id": "driver-too-old", "because": "cuda-compat is there"}])
    assert told(ended(cli.run("create", "demo")), "driver-too-old") == [("info", "torch")]
