"""Cards by the real pynvml, over a library of the kit that answers as a driver would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit import cards
from kit.cards import A100_MIG, RTX_3090, V100_A, V100_B, WORKSTATION, Driver

from envforge.model.machine import Slice
from envforge.probe import gpus, smi


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = cards.driver(tmp_path / "driver")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(made.folder))
    monkeypatch.setenv("PATH", str(tmp_path))
    return made


def nvidia_smi(driver: Driver, script: str) -> None:
    """A program of this name that runs ``script``, where PATH leads."""
    program = driver.folder.parent / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def test_the_workstation(driver: Driver) -> None:
    driver.put(*WORKSTATION)
    seen = gpus.look()
    assert (seen.status, seen.driver, seen.cuda) == ("found", "550.54.15", "12.4")
    assert [(card.index, card.name, card.compute_capability, card.uuid) for card in seen.cards] == [
        (0, RTX_3090.name, "8.6", RTX_3090.uuid),
        (1, V100_A.name, "7.0", V100_A.uuid),
        (2, V100_B.name, "7.0", V100_B.uuid),
    ]
    assert seen.cards[0].memory == 24 << 30
    assert [(each.who, each.status) for each in seen.asked] == [("NVML", "found")]


def test_a_driver_without_a_card(driver: Driver) -> None:
    seen = gpus.look()
    assert (seen.status, seen.cards, seen.driver) == ("absent", (), "550.54.15")


def test_parts_of_a_card(driver: Driver) -> None:
    driver.put(A100_MIG)
    (card,) = gpus.look().cards
    assert card.mig
    assert card.slices == (
        Slice(uuid="MIG-aaaa0001", profile="3g.20gb", memory=int(19.5 * 2**30)),
        Slice(uuid="MIG-aaaa0002", profile="1g.5gb", memory=int(4.75 * 2**30)),
    )


@pytest.mark.parametrize(
    ("also", "why"),
    [
        (("init 18",), "of different versions: start the machine anew"),
        (("init 9",), "the driver is not loaded"),
        (("init 13",), "too old"),
        (("init 999",), "Unknown Error"),
        (("crash",), "killed by SIGABRT"),
        (("count 100000",), "100000 cards"),
        (("count 5",), "GPU 0: Invalid Argument"),
    ],
)
def test_a_driver_that_fails_or_lies(driver: Driver, also: tuple[str, ...], why: str) -> None:
    driver.put(also=also)
    seen = gpus.look()
    assert seen.status.startswith("failed: ")
    assert why in seen.status
    assert seen.cards == ()


@pytest.mark.slow
def test_a_driver_that_hangs_is_asked_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_LIMIT", 1.0)
    nvidia_smi(driver, f"touch {driver.folder}/asked; exit 1")
    driver.put(also=("hang",))
    seen = gpus.look()
    assert seen.status == "failed: NVML ended after its time limit"
    assert not (driver.folder / "asked").exists()


def test_a_card_that_is_lost_leaves_the_others(driver: Driver) -> None:
    lost = cards.Card(bus="00000000:99:00.0", uuid="GPU-x", name="x", compute_capability="7.0", gib=1, status=15)
    driver.put(RTX_3090, lost)
    seen = gpus.look()
    assert seen.status == "failed: GPU 1: the card is lost: it no longer answers on its bus"
    assert [card.name for card in seen.cards] == [RTX_3090.name]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"compute_capability": "0.0"}, "compute capability 0.0"),
        ({"uuid": RTX_3090.uuid}, "two cards the same UUID"),
    ],
)
def test_nonsense_about_a_card(driver: Driver, change: dict[str, str], why: str) -> None:
    driver.put(RTX_3090, replace(V100_A, **change))  # type: ignore[arg-type] # they are texts, all of them
    seen = gpus.look()
    assert why in seen.status
    assert seen.cards == ()


def test_a_name_does_nothing_to_a_terminal(driver: Driver) -> None:
    driver.put(replace(V100_A, name="A\x1b[2JB"))
    assert gpus.look().cards[0].name == "A[2JB"


TABLE = """\
0, GPU-b, 00000000:81:00.0, Tesla V100-PCIE-16GB, 7.0, 16384, [N/A], 550.54.15
1, GPU-a, 00000000:21:00.0, NVIDIA A100, 8.0, 40960, Enabled, 550.54.15
"""


def test_nvidia_smi_stands_in_for_a_library_that_fails(driver: Driver) -> None:
    driver.put(also=("init 13",))
    nvidia_smi(
        driver, f"case $1 in --query*) /bin/cat <<'X'\n{TABLE}X\n;; *) echo '| CUDA Version: 12.4     |' ;; esac"
    )
    seen = gpus.look()
    assert (seen.status, seen.driver, seen.cuda) == ("found", "550.54.15", "12.4")
    assert [(card.index, card.uuid, card.mig, card.memory >> 30) for card in seen.cards] == [
        (0, "GPU-a", True, 40),
        (1, "GPU-b", False, 16),
    ]
    assert [(each.who, each.status.partition(":")[0]) for each in seen.asked] == [
        ("NVML", "failed"),
        ("nvidia-smi", "found"),
    ]


def test_where_both_fail_both_are_told(driver: Driver) -> None:
    driver.put(also=("init 18",))
    nvidia_smi(driver, "echo 'Failed to initialize NVML: Driver/library version mismatch' >&2; exit 18")
    seen = gpus.look()
    assert "different versions" in seen.status
    assert [each.who for each in seen.asked] == ["NVML", "nvidia-smi"]
    assert "nvidia-smi, exit status 18: Failed to initialize" in seen.asked[1].status


def test_a_host_without_a_driver_and_a_broken_nvidia_smi(driver: Driver) -> None:
    (driver.folder / "libnvidia-ml.so.1").unlink()
    if gpus.look().status != "absent":
        pytest.skip("this host has a driver of its own")
    nvidia_smi(driver, "exit 0")
    assert gpus.look().status == "absent"
    nvidia_smi(driver, "echo 'No devices were found'; exit 6")
    assert gpus.look().status == "absent"
    nvidia_smi(driver, "echo 0, GPU-b, x, V100, [N/A], 1, x, 390.1")
    assert gpus.look().status.startswith("failed: the table of nvidia-smi cannot be read")


def test_the_plain_output_without_its_frame_tells_no_cuda() -> None:
    assert smi.cuda("") is None
    assert smi.cuda("| NVIDIA-SMI 390.1  Driver Version: 390.1 |") is None
