"""What rules know about packages by name, with where it is from."""

from __future__ import annotations

from typing import Final

SUFFIXLESS_CUDA: Final[dict[str, int]] = dict.fromkeys(
    (
        "nvidia-cublas",
        "nvidia-cuda-cccl",
        "nvidia-cuda-crt",
        "nvidia-cuda-culibos",
        "nvidia-cuda-cupti",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvrtc",
        "nvidia-cuda-opencl",
        "nvidia-cuda-profiler-api",
        "nvidia-cuda-runtime",
        "nvidia-cuda-sanitizer-api",
        "nvidia-cuda-tileiras",
        "nvidia-cufft",
        "nvidia-cufile",
        "nvidia-curand",
        "nvidia-cusolver",
        "nvidia-cusparse",
        "nvidia-npp",
        "nvidia-nvfatbin",
        "nvidia-nvjitlink",
        "nvidia-nvjpeg",
        "nvidia-nvml-dev",
        "nvidia-nvptxcompiler",
        "nvidia-nvtx",
        "nvidia-nvvm",
    ),
    13,
)
"""Canonical name -> CUDA major, for the names that carry no suffix.

Source: what `cuda-toolkit[all]` 13.0.2 and 13.2.2 resolve to on the default index (November 2026); the same parts of
12.9.1 all end in `-cu12`. cuDNN, NCCL, cuSPARSELt and NVSHMEM keep their suffix in CUDA 13. Left out on purpose:
`nvidia-cuda-cuobjdump`, `nvidia-cuda-nvdisasm` and `nvidia-cuda-cuxxfilt`, programs that read files of any CUDA and
that nothing loads. Every other name without a suffix says nothing: `nvidia-ml-py`, `nvidia-cudnn-frontend` and
`nvidia-cutlass-dsl` stand in clean CUDA 12 environments.
"""

STRAY_FOLDERS: Final = frozenset({"benchmarks", "doc", "docs", "example", "examples", "test", "tests"})
"""Top-level folders that a wheel carries by mistake of packaging and that nothing imports when it is used.

Source: `tests/__init__.py` of gruut, gruut-ipa and nemo-text-processing in a clean environment of `xinference[all]`.
"""

MINOR_COMPATIBLE: Final = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""CUDA major -> the oldest Linux driver that runs every minor version of it (minor-version compatibility).

Source: NVIDIA, CUDA Compatibility, "Minor Version Compatibility" (450, 525, 580), and the table of drivers in the CUDA
Toolkit Release Notes of 13.0 (full versions). Read, not tried: November 2026.
"""
