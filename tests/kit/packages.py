"""Conda packages that tests begin with: two kinds of Python, modules, pip, and one that holds its prefix."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import os
import platform
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .channel import PLACEHOLDER, Package
from .cli import PYTHON
from .wheels import Wheel, canonical

# The interpreter itself, also where the tests run in a virtual environment.
BASE = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
VERSION = platform.python_version()
_LINKS = {"bin/python": f"python{PYTHON}", "bin/python3": f"python{PYTHON}"}
_LEFT_OUT = {"__pycache__", "idlelib", "lib2to3", "site-packages", "test", "tests", "tkinter", "turtledemo"}


def python(version: str = VERSION, depends: tuple[str, ...] = ()) -> Package:
    """A 'python' that borrows the interpreter of the tests as a virtual environment does: a link and ``pyvenv.cfg``.

    ``version``: another patch release of it may be claimed.
    """
    assert version.startswith(f"{PYTHON}."), f"{version} would be a {PYTHON}"
    config = f"home = {BASE.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    return Package(
        name="python",
        version=version,
        build="0_cpython",
        depends=depends,
        files={"pyvenv.cfg": config, f"lib/python{PYTHON}/site-packages/README.txt": "modules go here\n"},
        links={f"bin/python{PYTHON}": str(BASE), **_LINKS},
    )


def module(
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    files: Mapping[str, str] | None = None,
    scripts: Mapping[str, str] | None = None,
) -> Package:
    """A noarch Python package with its dist-info. What it ``requires`` are distributions, and packages of those names.

    ``files``: path in site-packages -> text, besides the module itself. ``scripts``: as of `Wheel`.
    """
    wheel = Wheel(name=name, version=version, requires=requires, files=files or {}, scripts=scripts or {})
    contents = {path: data if isinstance(data, bytes) else data.encode() for path, data in wheel.contents().items()}
    wanted = [Requirement(text) for text in requires]
    return Package(
        name=canonical(name),
        version=version,
        build="pyh0_0",
        depends=("python", *(f"{canonical(each.name)} {each.specifier}".strip() for each in wanted)),
        noarch="python",
        files=_installed(contents, f"{wheel.stem}.dist-info"),
        entry_points=wheel.scripts,
    )


@cache
def pip() -> Package:
    """The pip that the interpreter of the tests brings for new environments."""
    folder = getattr(ensurepip, "_WHEEL_PKG_DIR", None) or Path(ensurepip.__file__).parent / "_bundled"
    path = next(Path(folder).glob("pip-*.whl"), None)
    if path is None:
        pytest.skip("this Python brings no pip")
    version = path.name.split("-")[1]
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    return Package(
        name="pip",
        version=version,
        build="pyh0_0",
        depends=("python",),
        noarch="python",
        files=_installed(contents, f"pip-{version}.dist-info"),
        entry_points=dict.fromkeys(["pip", "pip3"], "pip._internal.cli.main:main"),
    )


def _installed(contents: Mapping[str, bytes], info: str) -> dict[str, str | bytes]:
    """A wheel's files as conda-build leaves them, with who installed them and a RECORD that says so."""
    files = {**contents, f"{info}/INSTALLER": b"conda\n"}
    files.pop(f"{info}/RECORD", None)
    rows = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in sorted(files.items())]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    return {f"site-packages/{path}": data for path, data in files.items()}


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def prefixed(name: str = "prefixed", version: str = "1.0") -> Package:
    """Two files that name the prefix, ``share/NAME/text`` and ``share/NAME/binary``, and a script that lies there."""
    return Package(
        name=name,
        version=version,
        files={
            f"bin/{name}": f"#!/bin/sh\ncat '{PLACEHOLDER}/share/{name}/text'\n",
            f"share/{name}/text": f"prefix = {PLACEHOLDER}\nlibraries = {PLACEHOLDER}/lib\n",
            f"share/{name}/binary": b"\1\2" + PLACEHOLDER.encode() + b"/lib\0\3\4" + PLACEHOLDER.encode() + b"\0\5",
        },
    )


@cache
def packed_python() -> Package:
    """The installation of the interpreter of the tests, without its test suites: a Python that stands by itself."""
    if "posix_local" in sysconfig.get_scheme_names():
        pytest.skip("this distribution's Python looks for modules in places of its own")
    prefix, name = Path(sys.base_prefix), f"bin/python{PYTHON}"
    files: dict[str, str | bytes] = {name: BASE.read_bytes()}
    library = prefix / "lib" / str(sysconfig.get_config_var("INSTSONAME"))
    if library.is_file():
        files[f"lib/{library.name}"] = library.read_bytes()
        files[name] = _beside(BASE.read_bytes(), str(library.parent))
    for path in _standard_library(Path(sysconfig.get_path("stdlib"))):
        data = path.read_bytes()
        # the one file to which a Python writes where it was to be installed
        if path.name.startswith("_sysconfigdata"):
            files[str(path.relative_to(prefix))] = data.decode().replace(str(prefix), PLACEHOLDER)
        else:
            files[str(path.relative_to(prefix))] = data
    return Package(name="python", version=VERSION, build="0_packed", files=files, links=_LINKS)


def _beside(program: bytes, folder: str) -> bytes:
    """The program, which looks for its library in the ``lib`` beside its ``bin``, not in an absolute folder."""
    old, new = f"\0{folder}\0".encode(), b"\0$ORIGIN/../lib\0"
    return program.replace(old, new.ljust(len(old), b"\0")) if len(new) <= len(old) else program


def _standard_library(stdlib: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(stdlib):
        subfolders[:] = [each for each in subfolders if each not in _LEFT_OUT and not each.startswith("config-")]
        yield from (Path(folder, name) for name in names if name != "EXTERNALLY-MANAGED")
