"""Which cards a profile fits."""

from __future__ import annotations

from envforge.model.machine import Card, Machine
from envforge.model.profile import Gpu, Profile
from envforge.profiles.matching import fits


def card(capability: str, gib: float, index: int = 0) -> Card:
    name = f"card {capability}"
    return Card(index=index, uuid=f"GPU-{index}", name=name, compute_capability=capability, memory=int(gib * 2**30))


def machine(*cards: Card, driver: str | None = "550.54.14", status: str = "found") -> Machine:
    return Machine(
        system="Linux", architecture="x86_64", glibc="2.36", hostname="h", gpus_status=status, gpus=cards, driver=driver
    )


def profile(gpu: Gpu | None) -> Profile:
    return Profile(name="p", source="p.yaml", text="", gpu=gpu)


WORKSTATION = machine(card("8.6", 23.99, 0), card("7.0", 15.77, 1), card("7.0", 15.77, 2))


def test_each_card_is_judged_by_itself() -> None:
    fit = fits(profile(Gpu(compute_capability=("==7.0",), driver=">=525.60.13", memory_gib=">=15")), WORKSTATION)
    assert fit.fits
    assert [one.fits for one in fit.cards] == [False, True, True]
    assert fit.cards[0].reasons == ("compute capability 8.6, the profile wants ==7.0",)


def test_any_of_several_capabilities() -> None:
    fit = fits(profile(Gpu(compute_capability=("==7.0", ">=8.0,<9"))), WORKSTATION)
    assert all(one.fits for one in fit.cards)


def test_memory_and_number() -> None:
    fit = fits(profile(Gpu(memory_gib=">=20")), WORKSTATION)
    assert [one.reasons for one in fit.cards[1:]] == [("15.77 GiB of memory, the profile wants >=20 GiB",)] * 2
    fit = fits(profile(Gpu(compute_capability=("==7.0",), count=">=3")), WORKSTATION)
    assert fit.reasons == ("2 of the cards fit, the profile wants >=3",)


def test_the_driver() -> None:
    gpu = Gpu(driver=">=525.60.13")
    assert fits(profile(gpu), machine(card("7.0", 16), driver="525.147.05")).fits
    assert fits(profile(gpu), machine(card("7.0", 16), driver="470.1")).reasons == (
        "driver 470.1, the profile wants >=525.60.13",
    )
    assert fits(profile(gpu), machine(card("7.0", 16), driver=None)).reasons == (
        "the driver is not known, the profile wants >=525.60.13",
    )
    assert not fits(profile(gpu), machine(card("7.0", 16), driver="strange")).fits


def test_no_card_fits() -> None:
    fit = fits(profile(Gpu(compute_capability=("==9.0",))), WORKSTATION)
    assert fit.reasons == (
        "compute capability 8.6, the profile wants ==9.0",
        "compute capability 7.0, the profile wants ==9.0",
    )


def test_a_machine_without_cards() -> None:
    gpu = Gpu(compute_capability=("==7.0",), driver=">=525", memory_gib=">=15")
    assert fits(profile(gpu), machine(status="absent")).reasons == (
        "no GPU was found, the profile is for one with compute capability ==7.0, driver >=525, memory >=15 GiB",
    )
    failed = fits(profile(Gpu()), machine(status="failed: no permission"))
    assert failed.reasons == ("GPUs: failed: no permission, the profile is for one with any compute capability",)


def test_without_a_gpu_block_everything_fits() -> None:
    assert fits(profile(None), machine(status="absent")).fits
    fit = fits(profile(None), WORKSTATION)
    assert fit.fits
    assert all(one.fits for one in fit.cards)
