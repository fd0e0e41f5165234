from __future__ import annotations

import json
from typing import Any

import pytest

from envforge.model.machine import Card
from envforge.probe import gpus
from envforge.system.process import Completed


def answer(data: Any, **changes: Any) -> Completed:
    whole: dict[str, Any] = {"argv": ("python",), "status": 0, "stdout": json.dumps(data) + "\n"}
    return Completed(**{**whole, **changes})


def a_card(bus: str, **changes: Any) -> dict[str, Any]:
    card = {
        "uuid": f"GPU-{bus}",
        "name": "V100",
        "compute_capability": [7, 0],
        "memory": 1,
        "pci_bus": bus,
        "mig": False,
    }
    return {**card, **changes}


def test_cards_are_counted_in_the_order_of_their_bus() -> None:
    cards = [a_card("00000000:81:00.0"), a_card("00000000:21:00.0", compute_capability=[8, 6], mig=True)]
    seen = gpus.parse(answer({"status": "found", "why": "", "driver": "550.54", "cuda": 12040, "cards": cards}))
    assert (seen.status, seen.driver, seen.cuda) == ("found", "550.54", "12.4")
    assert seen.cards[0] == Card(
        index=0,
        uuid="GPU-00000000:21:00.0",
        name="V100",
        compute_capability="8.6",
        memory=1,
        pci_bus="00000000:21:00.0",
        mig=True,
    )
    assert [card.index for card in seen.cards] == [0, 1]


def test_no_driver_is_no_error() -> None:
    seen = gpus.parse(answer({"status": "absent", "why": "NVML Shared Library Not Found"}))
    assert seen == gpus.Gpus(status="absent")


def test_a_lost_card_is_told_and_the_others_stay() -> None:
    seen = gpus.parse(
        answer({"status": "failed", "why": "GPU 1: GPU is lost", "driver": "550", "cuda": None, "cards": [a_card("a")]})
    )
    assert seen.status == "failed: GPU 1: GPU is lost"
    assert len(seen.cards) == 1
    assert seen.cuda is None


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (answer({}, status=None, signal="SIGSEGV"), "killed by SIGSEGV"),
        (answer({}, status=None, timed_out=True), "time limit"),
        (answer({}, stdout=""), "cannot be read"),
        (answer([]), "cannot be read"),
        (answer({"status": "found", "cards": [{"pci_bus": "a"}]}), "cannot be read"),
    ],
)
def test_a_child_that_dies_or_babbles_is_failed_and_why(broken: Completed, why: str) -> None:
    seen = gpus.parse(broken)
    assert seen.status.startswith("failed: ")
    assert why in seen.status
    assert not seen.cards


def test_this_host_answers() -> None:
    seen = gpus.look()
    assert seen.status.partition(":")[0] in {"found", "absent", "failed"}
    assert (seen.status == "found") <= bool(seen.cards and seen.driver)
