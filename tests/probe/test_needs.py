"""What a host must have, by the names of wheels and the records of conda packages."""

from __future__ import annotations

import pytest
from packaging.utils import parse_wheel_filename

from envforge.model.bundle import Needs
from envforge.probe.needs import both, needs, needs_of_packages, strictest


def of(*files: str, glibc: str | None = "2.36") -> Needs:
    names = (parse_wheel_filename(file)[3] for file in files)
    return needs(([tag.platform for tag in tags] for tags in names), glibc=glibc)


@pytest.mark.parametrize(
    ("platform", "glibc"),
    [
        ("manylinux_2_28_x86_64", "2.28"),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", "2.17"),
        ("manylinux_2_34_x86_64.manylinux_2_5_x86_64", "2.5"),
        ("manylinux2014_x86_64", "2.17"),
        ("manylinux2010_x86_64", "2.12"),
        ("manylinux1_x86_64", "2.5"),
        ("linux_x86_64", "2.36"),
    ],
)
def test_a_wheel_runs_where_its_weakest_tag_does(platform: str, glibc: str) -> None:
    assert of(f"a-1-cp311-cp311-{platform}.whl") == Needs(architecture="x86_64", glibc=glibc)


def test_the_strictest_wheel_counts() -> None:
    files = [f"a-1-cp311-cp311-manylinux_2_{minor}_aarch64.whl" for minor in (5, 28, 17)]
    assert of(*files, "b-1-py3-none-any.whl") == Needs(architecture="aarch64", glibc="2.28")


def test_what_is_for_any_host_needs_nothing() -> None:
    assert of() == of("b-1-py3-none-any.whl", "c-1-py2.py3-none-any.whl") == Needs()


def test_where_no_glibc_is_known_none_is_asked_for() -> None:
    assert of("a-1-cp311-cp311-linux_x86_64.whl", glibc=None) == Needs(architecture="x86_64")


def test_of_several_the_strictest_is_what_all_need() -> None:
    assert strictest(Needs(glibc="2.9"), Needs(), Needs(glibc="2.17")) == "2.17"
    assert strictest(Needs()) is None


def test_conda_packages_say_it_themselves() -> None:
    packages = [
        ("x86_64", ("__glibc >=2.17,<3.0.a0", "libgcc >=13")),
        ("x86_64", ("__glibc >=2.28,<3.0.a0",)),
        (None, ("python >=3.9", "__unix")),
    ]
    assert needs_of_packages(packages) == Needs(architecture="x86_64", glibc="2.28")
    assert needs_of_packages([(None, ("python",))]) == Needs()


def test_wheels_and_packages_together() -> None:
    wheels, packages = Needs(architecture="x86_64", glibc="2.5"), Needs(architecture="x86_64", glibc="2.17")
    assert both(wheels, packages) == both(packages, wheels) == packages
    assert both(wheels, Needs()) == both(Needs(), wheels) == wheels
