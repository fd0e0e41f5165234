from __future__ import annotations

from typing import Any

import pytest
from rules.small import context, dist, found, install, profile, state

from envforge.model.finding import Finding
from envforge.model.native import Compiled, GpuCode, Native
from envforge.model.profile import Gpu, Ignore, Release
from envforge.rules.cards import admitted, card, runs

VLLM = dist("vllm 0.20.0")
STEP = install("vllm", "vllm")
V100 = Gpu(compute_capability=("==7.0",))
SITE = "lib/python3.10/site-packages"


def code(text: str) -> GpuCode:
    kind, _, arch = text.partition("_")
    digits = arch.rstrip("af")
    return GpuCode(kind="elf" if kind == "sm" else "ptx", arch=int(digits), variant=arch[len(digits) :])


def files(**codes: str) -> Native:
    """``_C="sm_70 sm_80"`` -> an object of vllm."""
    return Native(
        objects=tuple(
            Compiled(path=f"{SITE}/vllm/{name}.abi3.so", owner="vllm", code=tuple(map(code, text.split())))
            for name, text in codes.items()
        )
    )


def judged(native: Native | None, *, cards: tuple[str, ...] = (), **about: Any) -> tuple[Finding, ...]:
    return found(
        context(profile(**about), (STEP, state(VLLM)), native=native, cards=cards), "arch-unsupported"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("has", "on", "fits"),
    [
        ("sm_70", "7.0", True), ("sm_70", "7.5", True), ("sm_75", "7.0", False), ("sm_70", "8.0", False),
        ("sm_80", "8.6", True), ("sm_86", "8.0", False), ("sm_80", "9.0", False),
        ("sm_90a", "9.0", True), ("sm_100a", "10.3", False), ("sm_100f", "10.3", True), ("sm_103f", "10.0", False),
        ("sm_100f", "12.0", False), ("sm_120", "12.1", True),
        ("ptx_70", "7.0", True), ("ptx_70", "12.0", True), ("ptx_80", "7.5", False),
        ("ptx_90a", "9.0", True), ("ptx_90a", "10.0", False), ("ptx_100f", "10.3", True), ("ptx_100f", "12.0", False),
    ],
)  # fmt: skip
def test_what_runs_where(has: str, on: str, fits: bool) -> None:
    assert runs(code(has), card(on)) is fits


def test_a_range_admits_the_cards_that_there_are_and_a_version_itself() -> None:
    def of(*specifiers: str) -> list[str]:
        return [f"{major}.{minor}" for major, minor in admitted(profile(gpu=Gpu(compute_capability=specifiers)))]

    assert of(">=8.0,<9") == ["8.0", "8.6", "8.9"]
    assert of("==7.0", ">=9,<10") == ["7.0", "9.0"]
    assert of("==8.7") == ["8.7"]
    assert admitted(profile()) == ()
    assert admitted(profile(gpu=Gpu(driver=">=525"))) == ()


def test_a_distribution_without_code_for_the_card_is_an_error() -> None:
    (one,) = judged(files(_C="sm_75 sm_80 ptx_80", _moe_C="sm_80"), gpu=V100)

    assert (one.severity, one.subject, one.evidence["cards"]) == ("error", "vllm", ["7.0"])
    assert one.evidence["code"] == ["sm_75", "sm_80", "ptx_80"]
    assert "`vllm` 0.20.0 has no GPU code for compute capability 7.0" in one.message


def test_one_file_that_fits_is_enough_and_the_others_are_told_as_info() -> None:
    (one,) = judged(files(_C="sm_70 sm_80", _fa2_C="sm_80 ptx_80"), gpu=V100)

    assert (one.severity, one.evidence["files"]) == ("info", {"vllm/_fa2_C.abi3.so": ["sm_80", "ptx_80"]})


def test_a_file_that_the_release_calls_essential_must_fit() -> None:
    releases = (Release(name="vllm", version="0.20.0", essential=("_C.abi3.so",)),)
    told = judged(files(_C="sm_75", _moe_C="sm_70"), gpu=V100, releases=releases)

    assert [(one.severity, one.evidence["files"]) for one in told] == [("error", ["vllm/_C.abi3.so"])]
    assert "`_C.abi3.so`, without which it is of no use" in told[0].message


def test_of_several_cards_some_is_a_warning_and_the_one_that_is_here_an_error() -> None:
    wide = Gpu(compute_capability=(">=7.5,<9",))

    assert [(one.severity, one.evidence["cards"]) for one in judged(files(_C="sm_80"), gpu=wide)] == [
        ("warning", ["7.5"])
    ]
    assert [one.severity for one in judged(files(_C="sm_80"), gpu=wide, cards=("7.5",))] == ["error"]
    assert judged(files(_C="sm_75 sm_80"), gpu=wide, cards=("7.5", "8.6")) == ()


def test_for_any_machine_the_cards_that_are_here_are_worth_a_warning() -> None:
    assert [one.severity for one in judged(files(_C="sm_80"), cards=("7.0",))] == ["warning"]
    assert judged(files(_C="sm_80")) == ()


def test_what_carries_no_code_is_for_every_card() -> None:
    assert judged(Native(objects=(Compiled(path=f"{SITE}/vllm/x.so", owner="vllm"),)), gpu=V100) == ()


def test_before_anything_is_there_the_release_tells() -> None:
    releases = (Release(name="vllm", version="0.20.0", compute_capability=(">=7.5",), reference="cuobjdump"),)
    (one,) = judged(None, gpu=V100, releases=releases)

    assert (one.severity, one.step, one.evidence["reference"]) == ("error", "vllm", "cuobjdump")
    assert judged(None, gpu=Gpu(compute_capability=("==7.5",)), releases=releases) == ()
    # The files themselves know better, and another build of the release is another thing.
    assert judged(files(_C="sm_70"), gpu=V100, releases=releases) == ()
    local = (Release(name="vllm", version="0.20.0+cu126", compute_capability=(">=7.5",)),)
    assert judged(None, gpu=V100, releases=local) == ()


def test_before_anything_is_there_a_wheel_that_was_installed_before_tells_more_than_the_release() -> None:
    releases = (Release(name="vllm", version="0.20.0", compute_capability=(">=7.5",)),)
    wheels = {str(VLLM.sha256): files(_C="sm_70").objects}
    about = context(profile(gpu=V100, releases=releases), (STEP, state(VLLM)), wheels=wheels)

    assert found(about, "arch-unsupported") == ()
    unfit = {str(VLLM.sha256): files(_C="sm_80").objects}
    (one,) = found(context(profile(gpu=V100), (STEP, state(VLLM)), wheels=unfit), "arch-unsupported")
    assert one.evidence["code"] == ["sm_80"]


def test_what_is_ignored_with_a_reason_is_info() -> None:
    ignore = (Ignore(id="arch-unsupported", subject="vllm", because="only its tokenizer is used"),)
    (one,) = judged(files(_C="sm_80"), gpu=V100, ignore=ignore)

    assert (one.severity, one.evidence["ignored"]) == ("info", "only its tokenizer is used")
