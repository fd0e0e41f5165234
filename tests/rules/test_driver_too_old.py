from __future__ import annotations

import pytest
from rules.small import dist, state

from envforge.model.finding import Severity
from envforge.model.machine import Machine
from envforge.model.state import Distribution, package_key
from envforge.rules.driver_too_old import built_for, driver_too_old


def host(driver: str | None, cuda: str | None = None) -> Machine:
    return Machine(
        system="Linux",
        architecture="x86_64",
        glibc="2.36",
        hostname="box",
        gpus_status="found",
        driver=driver,
        cuda=cuda,
    )


CU126 = dist("torch 2.7.1+cu126")
CU130 = dist("torch 2.11.0+cu130")
CONDA = Distribution(name=package_key("cuda-version"), version="12.9", build="h4f385c5_3")


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        ([CU126], ("torch", (12, 6))),
        ([dist("torch 2.7.1"), dist("nvidia-cuda-runtime-cu12 12.6.77")], ("nvidia-cuda-runtime-cu12", (12, 6))),
        ([CU126, dist("nvidia-cuda-runtime-cu12 12.6.77")], ("torch", (12, 6))),
        ([CU126, dist("nvidia-cuda-runtime 13.0.96")], ("nvidia-cuda-runtime", (13, 0))),
        ([dist("torch 2.11.0"), dist("cuda-toolkit 13.0.2")], ("cuda-toolkit", (13, 0))),
        ([CONDA], ("conda:cuda-version", (12, 9))),
        ([dist("torch 2.7.1+cpu")], None),
        ([dist("torch 2.7.1"), dist("nvidia-ml-py 13.580.82"), dist("flash-attn 2.8.3+cu12torch2.7")], None),
        ([dist("cuda-toolkit 13")], None),
        ([], None),
    ],
)
def test_what_it_was_built_for(installed: list[Distribution], wanted: tuple[str, tuple[int, int]] | None) -> None:
    found = built_for(state(*installed))
    assert (None if found is None else (found[0].name, found[1])) == wanted


@pytest.mark.parametrize(
    ("installed", "driver", "cuda", "severity"),
    [
        (CU126, "560.35.05", "12.6", None),
        (CU126, "580.65.06", "13.0", None),
        (CU126, "550.54.15", "12.4", Severity.INFO),
        (CU126, "525.60.13", "12.0", Severity.INFO),
        (CU126, "470.256.02", "11.4", Severity.ERROR),
        (CU126, "520.61.05", None, Severity.ERROR),
        (CU126, "550.54.15", None, None),
        (CU126, None, None, None),
        (CU130, "575.57.08", "12.9", Severity.ERROR),
        (CU130, "580.65.06", "13.0", None),
        (dist("torch 1.13.1+cu117"), "450.36.06", "11.0", Severity.ERROR),
        (dist("torch 1.13.1+cu117"), "450.80.02", "11.0", Severity.INFO),
        (dist("torch 1.5.1+cu101"), "410.48", "10.0", Severity.ERROR),
        (dist("torch 9.0+cu140"), "580.65.06", "13.0", Severity.ERROR),
        (CU126, "strange", "12.6", None),
        (CONDA, "470.256.02", "11.4", Severity.ERROR),
    ],
)
def test_each_driver(installed: Distribution, driver: str | None, cuda: str | None, severity: Severity | None) -> None:
    found = list(driver_too_old(state(installed), host(driver, cuda)))
    assert [each.severity for each in found] == ([] if severity is None else [severity])


def test_what_is_said() -> None:
    (error,) = driver_too_old(state(CU130), host("550.54.15", "12.4"))
    assert error.message == (
        "`torch` 2.11.0+cu130 is for CUDA 13.0, which needs driver 580.65.06 or newer; "
        "`box` has driver 550.54.15, which supports CUDA up to 12.4"
    )
    assert error.evidence == {"cuda": "13.0", "oldest": "580.65.06", "driver": "550.54.15", "up_to": "12.4"}
    (warning,) = driver_too_old(state(CU130), host("550.54.15", "12.4"), Severity.WARNING)
    assert warning.severity is Severity.WARNING
    (info,) = driver_too_old(state(CU126), host("550.54.15", "12.4"), Severity.WARNING)
    assert info.message.endswith("which supports CUDA up to 12.4: it runs by minor-version compatibility")
