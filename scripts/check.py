"""The whole suite, as ``./bootstrap.sh test`` runs it in the development environment.

Lint, format, types, import contracts and shell scripts, then the tests over ``src``; at last the wheel, built by way
of the sdist and installed into an environment of its own, with ``src`` out of reach. Every part runs even if
one before it failed; exit 1 if any did.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import BootstrapError, ensure, pip_variables

_ROOT = Path(__file__).resolve().parent.parent
_SHELL = ("bootstrap.sh", ".ci/run", "scripts/lock.sh", "src/envforge/store/bundles/start.sh")
# What shows that the wheel brings all that is needed: the user's words, every verb, both engines, a build, a guard.
_WORLDS = ("engine-pip", "sdist-built-once", "story-pin-at-the-end")
_WHEEL_TESTS = ("tests/cli", "tests/test_verbs.py", *(f"tests/test_worlds.py::test_world[{name}]" for name in _WORLDS))


def main() -> int:
    tools = Path(sys.executable).parent
    parts: dict[str, list[str]] = {
        "ruff check": [str(tools / "ruff"), "check"],
        "ruff format": [str(tools / "ruff"), "format", "--check"],
        "mypy": [str(tools / "mypy")],
        "import contracts": [str(tools / "lint-imports"), "--no-cache"],
        "tests": [sys.executable, "-m", "pytest", "--numprocesses=auto", "-q"],
    }
    if (tools / "shellcheck").exists():  # there is no wheel of it for every architecture
        parts["shellcheck"] = [str(tools / "shellcheck"), *_SHELL]
    failed = [name for name, command in parts.items() if not run(name, command)]
    with tempfile.TemporaryDirectory(prefix="envforge-wheel-") as folder:
        if not check_wheel(Path(folder)):
            failed.append("wheel")
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall parts passed", flush=True)
    return 1 if failed else 0


def run(name: str, command: list[str], *, cwd: Path = _ROOT, variables: dict[str, str] | None = None) -> bool:
    print(f"\n=== {name}", flush=True)
    return subprocess.run(command, cwd=cwd, env=variables, check=False).returncode == 0


def check_wheel(folder: Path) -> bool:
    """Build the wheel, install it beside the locked packages, and test what was installed."""
    dist, place = folder / "dist", folder / "place"
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist)]
    if not run("build of sdist and wheel", build):
        return False
    environment = folder / "environment"
    try:
        ensure(environment, _ROOT / "requirements-dev.lock", None)
    except BootstrapError as error:
        print(error, flush=True)
        return False
    python = str(environment / "bin" / "python")
    offline = pip_variables({}, dict(os.environ))
    wheels = [str(path) for path in dist.glob("*.whl")]
    place.mkdir()
    shutil.copytree(_ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_ROOT / "pyproject.toml", place)
    pip = [python, "-I", "-m", "pip", "--disable-pip-version-check"]
    outside = "import sys, envforge; sys.exit(not envforge.__file__.startswith(sys.prefix))"
    return (
        run("installation of the wheel", [*pip, "install", "-q", "--no-deps", "--no-index", *wheels], variables=offline)
        and run("requirements of the wheel", [*pip, "check"], variables=offline)
        and run("src is out of reach", [python, "-c", outside], cwd=place)
        and run("tests of the wheel", [python, "-m", "pytest", "--numprocesses=auto", "-q", *_WHEEL_TESTS], cwd=place)
    )


if __name__ == "__main__":
    sys.exit(main())
