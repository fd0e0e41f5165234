"""Real venvs, filled by real uv and pip from tiny wheels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.wheels import Wheel

UV = Path(sys.executable).parent / "uv"

Install = Callable[..., None]


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "PYTHON"))}
    cache = str(tmp_path_factory.mktemp("cache"))
    return env | {
        "UV_CACHE_DIR": cache,
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_LINK_MODE": "copy",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.fixture
def venv(tmp_path: Path, clean: dict[str, str]) -> Path:
    prefix = tmp_path / "venv"
    subprocess.run([UV, "venv", "-q", "-p", sys.executable, prefix], check=True, env=clean)
    return prefix


@pytest.fixture(scope="session")
def install(clean: dict[str, str]) -> Install:
    """``install(prefix, wheel, ..., pip=False)``: one call of the engine for each wheel."""

    def run(prefix: Path, *wheels: Wheel, pip: bool = False) -> None:
        wheelhouse = prefix.parent / "wheelhouse"
        wheelhouse.mkdir(exist_ok=True)
        python = prefix / "bin" / "python"
        for wheel in wheels:
            path = wheelhouse / wheel.filename
            path.write_bytes(wheel.bytes())
            argv: list[str | Path] = [UV, "pip", "install", "-q", "--no-deps", "-p", python, path]
            if pip:
                argv = [
                    sys.executable,
                    "-m",
                    "pip",
                    "--python",
                    python,
                    "install",
                    "-q",
                    "--no-deps",
                    "--no-index",
                    path,
                ]
            subprocess.run(argv, check=True, env=clean)

    return run


@pytest.fixture
def site(venv: Path) -> Path:
    (found,) = (venv / "lib").glob("python*/site-packages")
    return found
