"""How long `envforge --version` takes, against `python -c "import typer"`: at most 1.5 times.

python tests/benchmarks/bench_start.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import envforge

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import medians, seconds, tell

ROUNDS = 15


def main() -> None:
    source = str(Path(envforge.__file__).parent.parent)
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": source}

    def python(*words: str) -> float:
        command = [sys.executable, *words]
        return seconds(lambda: subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, check=True))

    version, help_, typer, bare = medians(
        ROUNDS,
        lambda: python("-m", "envforge", "--version"),
        lambda: python("-m", "envforge", "--help"),
        lambda: python("-c", "import typer"),
        lambda: python("-c", ""),
    )
    tell(f"python alone {bare * 1000:.0f} ms; import typer {typer * 1000:.0f} ms")
    tell(
        f"--version {version * 1000:.0f} ms, ratio {version / typer:.2f}; "
        f"--help {help_ * 1000:.0f} ms, ratio {help_ / typer:.2f}"
    )


if __name__ == "__main__":
    main()
