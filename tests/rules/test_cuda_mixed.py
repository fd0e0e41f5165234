from __future__ import annotations

import pytest
from rules.small import context, dist, found, install, profile, state

from envforge.rules.cuda_mixed import cuda_major


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("nvidia-nccl-cu12 2.26.2", 12),
        ("nvidia-nccl-cu11 2.21.5", 11),
        ("nvidia-cudnn-cu13 9.20.0.48", 13),
        ("nvidia-cublas-cu117 11.10.3", 11),
        ("nvidia-dali-cuda120 1.50", 12),
        ("nvidia-cutlass-dsl-libs-cu12 4.8.1", 12),
        ("nvidia-cublas 13.0.2", 13),
        ("nvidia-cufft 12.0.0.61", 13),
        ("cupy-cuda12x 14.2.0", 12),
        ("cupy-cuda117 10.6", 11),
        ("torch 2.7.1+cu126", 12),
        ("torch 2.11.0+cu130", 13),
        ("flash-attn 2.8.3+cu12torch2.7", 12),
        ("torch 2.7.1", None),
        ("torch 2.7.1+cpu", None),
        ("nvidia-ml-py 13.615.71", None),
        ("nvidia-cudnn-frontend 1.18.0", None),
        ("nvidia-cutlass-dsl 4.8.1", None),
        ("nvidia-cutlass-dsl-libs-base 4.8.1", None),
        ("nvidia-cuda-cuobjdump 13.5.37", None),
        ("cuda-bindings 12.9.4", None),
        ("cuda-toolkit 13.0.2", None),
        ("cupy 14.2.0", None),
    ],
)
def test_what_a_name_says_about_cuda(text: str, major: int | None) -> None:
    assert cuda_major(dist(text)) == major


def test_one_major_is_clean() -> None:
    installed = state(dist("nvidia-nccl-cu12 2.27.5"), dist("torch 2.10.0+cu126"), dist("nvidia-ml-py 13.0"))
    assert found(context(profile(), (install("a", "torch"), installed))) == ()


def test_the_intruder_is_named_with_what_brought_it() -> None:
    installed = state(
        dist("nvidia-nccl-cu12 2.26.2"),
        dist("nvidia-cublas-cu12 12.6.4.1"),
        dist("nvidia-nccl-cu11 2.21.5"),
        dist("ctranslate2 4.0", "nvidia-nccl-cu11"),
    )
    (mixed,) = found(context(profile(), (install("a", "ctranslate2"), installed)))
    assert mixed.key == ("cuda-mixed", "cuda")
    assert mixed.message == (
        "installed together: CUDA 11 (`nvidia-nccl-cu11` 2.21.5) and CUDA 12 (`nvidia-cublas-cu12` 12.6.4.1, "
        "`nvidia-nccl-cu12` 2.26.2); `nvidia-nccl-cu11` 2.21.5 came: `ctranslate2` 4.0 requires `nvidia-nccl-cu11`"
    )
    assert mixed.evidence["majors"]["11"] == ["nvidia-nccl-cu11 2.21.5"]
