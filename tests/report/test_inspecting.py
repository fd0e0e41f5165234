from __future__ import annotations

from envforge.model.result import Result
from envforge.model.views import Inspected, InspectedFile, InspectView
from envforge.report.console import render

VIEW = InspectView(
    subject="demo",
    kind="environment",
    cards=("7.0", "8.6"),
    distributions=(
        Inspected(
            name="kernels", version="1.0.0", objects=3, code=("sm_70", "sm_80", "sm_90a", "ptx_80"),
            fits=("7.0", "8.6"), files=(InspectedFile(path="kernels/_C.so", code=("sm_70",)),),
        ),
        Inspected(name="numpy", version="2.0", objects=22),
        Inspected(name="sparse", version="1", objects=1, code=("sm_90",)),
        Inspected(name=None, version=None, objects=1, files=(InspectedFile(path="x.so", trouble="it is truncated"),)),
    ),
    seconds=0.04,
)  # fmt: skip


def shown(view: InspectView, *, verbose: bool = False) -> list[str]:
    return render(Result(command="inspect", data=view), verbose=verbose).splitlines()


def test_distributions_with_gpu_code_and_what_cannot_be_read_are_shown() -> None:
    assert shown(VIEW) == [
        "demo: 27 compiled files, for compute capability 7.0, 8.6, 0.0 s",
        "distribution   files  runs on   GPU code",
        "kernels 1.0.0  3      7.0, 8.6  sm 70, 80, 90a; ptx 80",
        "sparse 1       1      none      sm 90",
        "! x.so: it is truncated",
    ]


def test_verbose_shows_all_distributions_and_files() -> None:
    lines = shown(VIEW, verbose=True)

    assert "numpy 2.0      22" in lines
    assert "· kernels/_C.so: sm 70" in lines


def test_without_gpu_code_and_cards_that_is_said() -> None:
    bare = InspectView(
        subject="a.whl",
        kind="wheel",
        cards=(),
        seconds=0.0,
        distributions=(Inspected(name="a", version="1", objects=1),),
    )

    assert shown(bare) == ["a.whl: 1 compiled file, no card to judge for, 0.0 s", "no GPU code"]
