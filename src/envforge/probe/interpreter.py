"""What one Python is, by running it once, isolated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from envforge.model.errors import EnvforgeError
from envforge.model.machine import InterpreterFacts
from envforge.system import environ, process

_LIMIT = 20.0

# Runs under any Python from 3.6 on. `base` leads out of a virtual environment.
_QUESTION = """
import glob, json, os, platform, sys, sysconfig
def bundled():
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels"]
    try:
        import ensurepip
        folders.insert(0, os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"))
    except ImportError:
        pass
    for folder in folders:
        found = sorted(glob.glob(os.path.join(folder, "pip-*.whl"))) if folder else []
        if found:
            return found[-1]
    return None
info = sys.implementation.version
full = "%d.%d.%d" % info[:3]
if info.releaselevel != "final":
    full += info.releaselevel[0] + str(info.serial)
print(json.dumps({
    "version": platform.python_version(),
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "implementation": sys.implementation.name,
    "abiflags": getattr(sys, "abiflags", ""),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "glibc": platform.libc_ver()[1] if platform.libc_ver()[0] == "glibc" else None,
    "pip_wheel": bundled(),
    "markers": {
        "implementation_name": sys.implementation.name,
        "implementation_version": full,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    },
}))
"""


@cache
def ask(path: str) -> dict[str, Any]:
    """The raw answers of the Python at ``path`` (absolute); raises EnvforgeError ``python-broken``."""
    try:
        answer = process.run([path, "-I", "-c", _QUESTION], env=environ.hermetic(), timeout=_LIMIT)
    except OSError as error:
        raise _broken(path, error.strerror or "it cannot be started") from error
    if not answer.ok:
        raise _broken(path, f"{answer.ending()}\n{answer.tail(3)}".strip())
    try:
        data = json.loads(answer.stdout.strip().rpartition("\n")[2])
    except ValueError as error:
        raise _broken(path, "it answers no JSON: it is no Python, or its `site` prints") from error
    if not isinstance(data, dict) or "markers" not in data:
        raise _broken(path, "its answer is not that of a Python")
    return data


def facts(path: str) -> InterpreterFacts:
    """All that a resolver and an installer must know of the Python at ``path`` (absolute).

    Raises EnvforgeError ``python-broken``, or ``not-cpython`` for another implementation.
    """
    data = ask(path)
    if data["implementation"] != "cpython":
        raise EnvforgeError(
            "not-cpython",
            f"`{path}` is no CPython but {data['implementation']}",
            hint="set `ENVFORGE_PYTHON` to a CPython",
        )
    markers = {str(name): str(value) for name, value in data["markers"].items()}
    major, minor = (int(part) for part in markers["python_version"].split("."))
    abi = f"cp{major}{minor}{data['abiflags']}"
    return InterpreterFacts(
        path=path,
        version=str(data["version"]),
        implementation="cpython",
        abi=abi,
        free_threaded=bool(data["free_threaded"]),
        architecture=markers["platform_machine"],
        glibc=data["glibc"] or environ.glibc(),
        markers=markers,
        tags=tuple(_tags((major, minor), abi)),
        pip_wheel=data["pip_wheel"],
    )


# The glibc that an older, named manylinux stands for (PEP 600).
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


def assumed(version: str, architecture: str, glibc: str) -> InterpreterFacts:
    """Facts of a CPython ``version`` (``3.10`` or ``3.10.13``) on a Linux host that is not this one, or lacks it."""
    from packaging import tags  # noqa: PLC0415 - paid only where an interpreter is asked

    major, minor = (int(part) for part in version.split(".")[:2])
    full = version if version.count(".") == 2 else f"{version}.0"
    abi = f"cp{major}{minor}"
    platforms = []
    for number in range(int(glibc.split(".")[1]), 4, -1):
        platforms.append(f"manylinux_2_{number}_{architecture}")
        if number in _LEGACY:
            platforms.append(f"{_LEGACY[number]}_{architecture}")
    platforms.append(f"linux_{architecture}")
    found = [
        *tags.cpython_tags((major, minor), [abi], platforms),
        *tags.compatible_tags((major, minor), abi, platforms),
    ]
    return InterpreterFacts(
        path=None,
        version=full,
        implementation="cpython",
        abi=abi,
        free_threaded=False,
        architecture=architecture,
        glibc=glibc,
        markers={
            "implementation_name": "cpython",
            "implementation_version": full,
            "os_name": "posix",
            "platform_machine": architecture,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": full,
            "python_version": f"{major}.{minor}",
            "sys_platform": "linux",
        },
        tags=tuple(map(str, found)),
    )


def _tags(version: tuple[int, int], abi: str) -> Iterator[str]:
    """Wheel tags for a CPython of ``version`` on this host, best first."""
    from packaging import tags  # noqa: PLC0415 - paid only where an interpreter is asked

    platforms = list(tags.platform_tags())
    yield from map(str, tags.cpython_tags(version, abis=[abi], platforms=platforms))
    yield from map(str, tags.compatible_tags(version, f"cp{version[0]}{version[1]}", platforms))


def _broken(path: str, cause: str) -> EnvforgeError:
    return EnvforgeError(
        "python-broken",
        f"the Python at `{path}` does not work",
        cause=cause,
        hint="repair it, or set `ENVFORGE_PYTHON` to another one",
    )
