from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules.small import context, dist, found, install, profile, state, step

from envforge.model.finding import Severity
from envforge.model.profile import Action, Forbid, Hold, Ignore, Index, Keep, Symbol
from envforge.model.state import Origin
from envforge.rules.context import index_names_allowed

TORCH = Keep(names=("torch", "torchvision"), because="vllm's kernels are built against it", reference="the README")
CU126 = dist("torch 2.7.1+cu126", index="torch")


def test_another_torch_is_told_with_the_requirement_that_forced_it() -> None:
    vllm, xformers = dist("vllm 0.10.0", "torch==2.7.1"), dist("xformers 0.0.32", "torch==2.8.0")
    about = context(
        profile(TORCH),
        (install("vllm", "vllm"), state(vllm, CU126)),
        (install("xformers", "xformers"), state(vllm, xformers, dist("torch 2.8.0"))),
    )
    (kept,) = found(about, "kept-package-changed")
    assert kept.message == (
        "`torch` 2.7.1+cu126 was replaced by 2.8.0 from `pypi`: `xformers` 0.0.32 requires `torch==2.8.0` "
        "(vllm's kernels are built against it)"
    )
    assert kept.step == "xformers"
    assert kept.evidence["guard"] == "keep torch, torchvision"
    assert kept.evidence["reference"] == "the README"
    assert kept.evidence["forced_by"]["distribution"] == "xformers"
    (unmet,) = found(about, "requirement-unmet")
    assert unmet.message == (
        "`vllm` 0.10.0 requires `torch==2.7.1`, but 2.8.0 is installed: `xformers` 0.0.32 requires `torch==2.8.0`"
    )


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (dist("torch 2.7.1+cu126", index="pypi"), "from `torch` was replaced by the same version from `pypi`"),
        (dist("torch 2.7.1+cu126", index="torch", sha256="other"), "another build of the same version"),
        (dist("torch 2.7.1+cu126", index="torch", sha256=None, build="2"), "another build of the same version"),
    ],
)
def test_the_same_version_can_be_another_build(now: object, says: str) -> None:
    assert isinstance(now, type(CU126))
    about = context(profile(TORCH), (install("a", "torch"), state(CU126)), (install("b", "torch"), state(now)))
    (kept,) = found(about, "kept-package-changed")
    assert says in kept.message


def test_contents_decide_where_a_hash_of_the_wheel_is_not_known() -> None:
    before = dist("torch 2.7.1", sha256=None, contents="a")
    for contents, count in (("a", 0), ("b", 1)):
        now = dist("torch 2.7.1", sha256="x", contents=contents)
        about = context(profile(TORCH), (install("a", "torch"), state(before)), (install("b", "torch"), state(now)))
        assert len(found(about, "kept-package-changed")) == count


def test_a_removed_kept_package_is_open_until_the_same_build_is_back() -> None:
    moments = [
        (install("torch", "torch"), state(CU126)),
        (step("gone", Action.UNINSTALL, "torch"), state()),
        (install("again", "torch"), state(CU126)),
    ]
    (kept,) = found(context(profile(TORCH), *moments[:2]))
    assert kept.message.startswith("`torch` 2.7.1+cu126 was removed by step `gone`")
    assert found(context(profile(TORCH), *moments), "kept-package-changed") == ()


def test_a_step_may_allow_the_change_and_what_it_leaves_is_kept_from_then_on() -> None:
    moments = [
        (install("a", "torch"), state(dist("torch 2.7.1"))),
        (install("b", "torch>=2.8", allow=("torch",)), state(dist("torch 2.8.0"))),
        (install("c", "torch>=2.9"), state(dist("torch 2.9.0"))),
    ]
    about = profile(Keep(names=("tor*",)))
    assert found(context(about, *moments[:2])) == ()
    (kept,) = found(context(about, *moments))
    assert (kept.evidence["from"], kept.evidence["to"]) == ("2.8.0", "2.9.0")


HOLD = Hold(requirement="transformers>=4.53.3,<5", because="vLLM 0.10.0 calls all_special_tokens_extended")


def test_a_hold_names_what_brought_the_version() -> None:
    vllm, transformers = dist("vllm 0.10.0", "transformers>=4.53.2"), dist("transformers 5.20.2")
    (held,) = found(context(profile(HOLD), (install("vllm", "vllm==0.10.0"), state(vllm, transformers))))
    assert held.message == (
        "`transformers` 5.20.2 violates `transformers>=4.53.3,<5` (vLLM 0.10.0 calls all_special_tokens_extended): "
        "`vllm` 0.10.0 requires `transformers>=4.53.2`"
    )
    assert held.evidence["came_with"] == "vllm"
    assert "constrain: true" in str(held.remedy)


@pytest.mark.parametrize(
    ("requirement", "version", "holds"),
    [
        ("torch==2.7.1", "2.7.1+cu126", True),
        ("torch<=2.7.1", "2.7.1+cu126", True),
        ("torch>=2.8", "2.9.0.dev20260101", True),
        ("torch<2.8", "2.8.0", False),
        ("torch[extra]<2.8", "2.7.0", True),
        ("torch<2.8; python_version < '3.0'", "2.8.0", True),
        ("torch==2.7.1+cu126", "2.7.1", False),
        ("torch<2.8", "not-a-version", False),
        ("Torch<2.8", "2.8", False),
    ],
)
def test_what_a_hold_accepts(requirement: str, version: str, holds: bool) -> None:
    about = context(profile(Hold(requirement=requirement)), (install("a", "torch"), state(dist(f"torch {version}"))))
    assert (found(about, "hold-violated") == ()) is holds


def test_what_is_absent_violates_no_hold() -> None:
    assert found(context(profile(HOLD), (install("a", "six"), state(dist("six 1.0"))))) == ()


def test_a_forbidden_package_is_told_with_its_pattern_and_owner() -> None:
    about = context(
        profile(Forbid(patterns=("cupy*", "nvidia-*-cu11"))),
        (install("a", "app"), state(dist("app 1.0", "nvidia-nccl-cu11"), dist("nvidia-nccl-cu11 2.21.5"))),
    )
    (seen,) = found(about)
    assert seen.message == (
        "`nvidia-nccl-cu11` 2.21.5 is installed, and `nvidia-*-cu11` is forbidden: "
        "`app` 1.0 requires `nvidia-nccl-cu11`"
    )


def test_a_symbol_is_no_finding_while_nobody_looks() -> None:
    about = context(profile(Symbol(symbol="f", library="l.so")), (install("a", "six"), state(dist("six 1.0"))))
    assert found(about) == ()


def test_two_guards_of_one_package_are_two_findings() -> None:
    about = profile(Hold(requirement="six<2"), Hold(requirement="six<3"))
    seen = found(context(about, (install("a", "six"), state(dist("six 3.0")))))
    assert len({each.key for each in seen}) == len(seen) == 2


def test_ignore_lowers_by_id_and_subject() -> None:
    installed = state(dist("six 3.0"), dist("user 1.0", "six<2"), dist("other 1.0", "six<2"))
    about = profile(ignore=(Ignore(id="requirement-unmet", subject="us*", because="too careful"),))
    seen = {each.subject: each for each in found(context(about, (install("a", "six"), installed)))}
    assert seen["user"].severity is Severity.INFO
    assert seen["user"].evidence["ignored"] == "too careful"
    assert seen["other"].severity is Severity.ERROR
    assert list(seen) == ["other", "user"]


INDEXES = (
    Index(name="torch", url="u", packages=("torch", "nvidia-*")),
    Index(name="extra", url="v"),
    Index(name="pypi"),
)


def test_packages_of_an_index_mean_both_ways() -> None:
    about = profile(indexes=INDEXES)
    assert index_names_allowed(about, "torch", {}) == {"torch"}
    assert index_names_allowed(about, "nvidia-nccl-cu12", {"torch": "pypi"}) == {"torch", "pypi"}
    assert index_names_allowed(about, "numpy", {}) == {"extra", "pypi"}
    assert index_names_allowed(profile(), "numpy", {}) == {"pypi"}


def test_a_package_from_an_index_that_may_not_serve_it() -> None:
    about = profile(indexes=INDEXES)
    installed = state(dist("numpy 1.26.4", index="torch"), dist("torch 2.7.1", index="torch"))
    (wrong,) = found(context(about, (install("a", "torch"), installed)))
    assert wrong.id == "package-wrong-index"
    assert wrong.message == (
        "`numpy` 1.26.4 came from `torch`, which the profile does not allow for it (allowed: `extra`, `pypi`)"
    )


def test_a_substitute_may_serve_and_what_has_no_index_is_no_concern() -> None:
    about = profile(indexes=INDEXES)
    git = dist("own 1.0", index="elsewhere", origin=Origin(kind="git"))
    installed = state(dist("torch 2.7.1", index="pypi"), git, dist("pip 26.0", index=None))
    moment = (install("a", "torch"), installed)
    assert found(context(about, moment, substitutes={"torch": "pypi"})) == ()
    assert [each.subject for each in found(context(about, moment))] == ["torch"]


def test_a_step_narrows_its_indexes_for_what_it_brings() -> None:
    about = profile(indexes=(Index(name="torch", url="u"), Index(name="pypi")))
    first = (install("a", "six", indexes=("torch",)), state(dist("six 1.0", index="pypi")))
    later = (install("b", "app"), state(dist("six 1.0", index="pypi"), dist("app 1.0", index="pypi")))
    assert [each.subject for each in found(context(about, first, later))] == ["six"]


VERSIONS = st.sampled_from(["1.0", "1.1", "2.0", "2.0+cu126"])
STATES = st.dictionaries(st.sampled_from(["torch", "six", "numpy"]), VERSIONS, max_size=3)


@given(STATES, st.integers(1, 4))
def test_keep_is_silent_while_nothing_changes(versions: dict[str, str], times: int) -> None:
    installed = state(*(dist(f"{name} {version}") for name, version in versions.items()))
    moments = [(install(f"s{number}", "six"), installed) for number in range(times)]
    assert found(context(profile(Keep(names=("*",))), *moments)) == ()
