"""What is known of libraries by name, with where it is from."""

from __future__ import annotations

import re
from typing import Final

DRIVER: Final = re.compile(r"lib(?:cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[\w-]+)\.so(?:\.\d+)*")
"""Libraries that come with NVIDIA's driver and with nothing else (NVIDIA, driver README, "Installed components")."""

DRIVER_SYMBOL: Final = re.compile(r"(?:cu(?=[A-Z])|nvml|cuvid|NvEnc|nvEnc|optix)\w+")
"""What these define: with them absent, nobody can tell whether they have it."""

PRELOADERS: Final[dict[str, str]] = {"torch": "nvidia-*", "cuda-pathfinder": "nvidia-*"}
"""Distribution -> those whose libraries it finds for who requires it.

``torch/__init__.py`` (2.7.1, 2.10.0), `_preload_cuda_deps`: the libraries of `nvidia/*/lib`, wherever on sys.path they
lie, are loaded before `libtorch_global_deps.so`, or by its RPATH. ``cuda/pathfinder`` (1.x), `load_nvidia_dynamic_lib`:
the same folders; CuPy 14.2 loads its libraries so (``cupy/_environment.py``, `_preload_library`).
"""

BUNDLED: Final = re.compile(r".+[-.][0-9a-f]{8}\.so(?:\.\d+)*")
"""How auditwheel calls what it puts into a wheel: no host has a library of such a name."""
