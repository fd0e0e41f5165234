from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.small import context, dist, found, profile, state

from envforge.model.finding import Finding
from envforge.model.native import Asked, Compiled, Native, Unfound, Unresolved
from envforge.model.plan import Verdict
from envforge.model.profile import Guard, Ignore, Symbol
from envforge.rules.verdicts import verdicts

SITE = "lib/python3.10/site-packages"
NCCL = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
GUARD = Symbol(symbol="ncclCommWindowDeregister", library="libnccl.so.2", because="torch 2.10.0 needs it")
STATE = state(dist("torch 2.10.0"), dist("nvidia-nccl-cu12 2.26.2"))
GAP = Unresolved(
    path=f"{SITE}/torch/lib/libtorch_cuda.so",
    owner="torch",
    symbols=("ncclCommShrink", "ncclCommWindowDeregister"),
    library="libnccl.so.2",
    provider=NCCL,
    provides="nvidia-nccl-cu12",
    loaded=True,
)


def judged(native: Native, *guards: Guard, cards: tuple[str, ...] = (), **about: Any) -> tuple[Finding, ...]:
    return found(context(profile(*guards, **about), (None, STATE), native=native, cards=cards))


def test_a_symbol_is_told_with_file_library_distribution_and_version() -> None:
    (one,) = judged(Native(unresolved=(GAP,)))

    assert (one.id, one.severity, one.subject) == ("symbol-undefined", "error", "torch/lib/libtorch_cuda.so")
    assert one.message == (
        "`torch/lib/libtorch_cuda.so` of `torch` 2.10.0 needs `ncclCommShrink`, `ncclCommWindowDeregister`, "
        "which `libnccl.so.2` of `nvidia-nccl-cu12` 2.26.2 does not define"
    )
    assert one.evidence["provider"] == "nvidia-nccl-cu12 2.26.2"
    assert one.evidence["found"] == "nvidia/nccl/lib/libnccl.so.2"


def test_a_file_that_nothing_loads_by_itself_is_a_warning() -> None:
    beside = replace(GAP, loaded=False, library=None, provider=None, provides=None)
    (one,) = judged(Native(unresolved=(beside,)))

    assert one.severity == "warning"
    assert one.message.endswith("which nothing in its reach defines")


def test_a_symbol_version_of_the_hosts_library_is_told_with_its_path() -> None:
    gap = Unresolved(
        path=f"{SITE}/x/_x.so", owner="torch", symbols=("fstat",), version="GLIBC_2.38", library="libc.so.6",
        provider="/lib/libc.so.6", loaded=True,
    )  # fmt: skip
    (one,) = judged(Native(unresolved=(gap,)))

    assert "needs `fstat` in version GLIBC_2.38, which `libc.so.6` (/lib/libc.so.6) does not define" in one.message


def test_a_missing_library_is_a_warning_and_an_error_where_it_must_lie_in_the_environment() -> None:
    gap = Unfound(path=f"{SITE}/torio/lib/_torio_ffmpeg4.so", owner="torch", libraries=("libavutil.so.56",))
    inside = Unfound(path=f"{SITE}/torch/lib/a.so", owner="torch", libraries=("libnccl.so.2",), sought=True)
    told = {one.subject: one.severity for one in judged(Native(unfound=(gap, inside)))}

    assert told == {"torio/lib/_torio_ffmpeg4.so": "warning", "torch/lib/a.so": "error"}


def test_the_drivers_library_is_missed_only_beside_a_card() -> None:
    native = Native(unfound=(Unfound(path=f"{SITE}/v.so", owner=None, libraries=("libcuda.so.1",), driver=True),))

    assert judged(native) == ()
    assert [one.id for one in judged(native, cards=("8.6",))] == ["library-missing"]


def test_what_is_optional_by_design_is_ignored_by_a_pattern_with_the_reason() -> None:
    gap = Unfound(path=f"{SITE}/torio/lib/_torio_ffmpeg4.so", owner="torch", libraries=("libavutil.so.56",))
    ignore = (Ignore(id="library-missing", subject="torio/lib/*torio_ffmpeg[0-9].so", because="one for each FFmpeg"),)
    (one,) = judged(Native(unfound=(gap,)), ignore=ignore)

    assert (one.severity, one.evidence["ignored"]) == ("info", "one for each FFmpeg")


def test_the_guard_for_a_symbol_is_judged_once_somebody_has_looked() -> None:
    def verdict(native: Native | None) -> Verdict:
        return verdicts(context(profile(GUARD), (None, STATE), native=native))[0].verdict

    asked = Asked(symbol=GUARD.symbol, library=GUARD.library, found=(NCCL,))
    lacking = Asked(symbol=GUARD.symbol, library=GUARD.library, found=(NCCL,), lacking=(NCCL,))

    assert verdict(None) is Verdict.UNKNOWN
    assert verdict(Native(asked=(asked,))) is Verdict.HOLDS
    assert verdict(Native(asked=(lacking,))) is Verdict.OPEN


def test_a_guards_symbol_that_is_absent_names_the_file_and_its_distribution() -> None:
    asked = Asked(symbol=GUARD.symbol, library=GUARD.library, found=(NCCL,), lacking=(NCCL,))
    objects = (Compiled(path=NCCL, owner="nvidia-nccl-cu12"),)
    (one,) = judged(Native(objects=objects, asked=(asked,)), GUARD)

    assert (one.id, one.severity, one.subject) == ("symbol-absent", "error", "libnccl.so.2")
    assert one.message == (
        "`nvidia/nccl/lib/libnccl.so.2` of `nvidia-nccl-cu12` 2.26.2 does not define `ncclCommWindowDeregister` "
        "(torch 2.10.0 needs it)"
    )


def test_a_guards_library_that_is_absent_is_told() -> None:
    (one,) = judged(Native(asked=(Asked(symbol=GUARD.symbol, library=GUARD.library),)), GUARD)

    assert one.message == "there is no `libnccl.so.2` here (torch 2.10.0 needs it)"
