"""What `envforge create` adds to a shell script with the same `uv pip install` lines: at most 1.15 times, or 3 s.

    python tests/benchmarks/bench_create.py

400 distributions, all caches warm, in two sizes. What counts is the build alone, from the profile put into the records
(the plan is over) to the switch of the symlink, by the times of these two; there are no smoke checks. Beside it stands
the whole process less a plan as a process of its own, as a check. The script makes a venv with uv and installs the
same four lines into it, asking one index that has everything; each tool has a cache of its own.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import STEPS, Cli, Indexes, answered, forge, medians, seconds, serving, shell, tell

ROUNDS = 3
_SIZES = (8, 120)


def build(cli: Cli) -> tuple[float, float, int]:
    """Seconds from the end of the plan to the switch, of the whole process, and the number of files."""
    answers = []
    whole = seconds(lambda: answers.append(answered(cli.run("create", "demo", "--replace"))))
    data = answers[0].data
    record = cli.home / "records" / "demo" / str(data["generation"]) / "profile.yaml"
    nanoseconds = cli.link().lstat().st_mtime_ns - record.stat().st_mtime_ns
    return nanoseconds / 1e9, whole, int(data["files"])


def script(folder: Path, indexes: Indexes) -> None:
    """The same by hand."""
    venv = folder / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    cache = folder / "uv-cache"
    shell("venv", "--quiet", "--python", sys.executable, str(venv), cache=cache)
    python = str(venv / "bin" / "python")
    for _, _, lines in STEPS:
        shell(
            "pip", "install", "--quiet", "--python", python, "--default-index", indexes.url("all"), *lines, cache=cache
        )


def measure(folder: Path, indexes: Indexes) -> None:
    cli = forge(folder / "forge", indexes)
    script(folder, indexes)
    files = build(cli)[2]
    wholes: list[float] = []

    def built() -> float:
        shutil.rmtree(cli.home / "generations", ignore_errors=True)  # else the disk fills
        taken, whole, _ = build(cli)
        wholes.append(whole)
        return taken

    def by_hand() -> float:
        shutil.rmtree(folder / "venv", ignore_errors=True)
        return seconds(lambda: script(folder, indexes))

    def plan() -> float:
        return seconds(lambda: answered(cli.run("plan", "demo")))

    made, scripted, planned = medians(ROUNDS, built, by_hand, plan)
    whole = sorted(wholes)[len(wholes) // 2]
    tell(
        f"{files} files: build {made:.2f} s, script {scripted:.2f} s; "
        f"ratio {made / scripted:.2f}, {made - scripted:+.2f} s"
    )
    tell(f"  create {whole:.2f} s less plan {planned:.2f} s: {whole - planned:.2f} s")
    steps = cli.run("create", "demo", "--replace").data["steps"]
    tell("  steps: " + ", ".join(f"{step['name']} {step['seconds']:.2f} s" for step in steps))


def main() -> None:
    for files in _SIZES:
        folder = Path(tempfile.mkdtemp(prefix="bench-create-"))
        try:
            with serving(files=files) as indexes:
                measure(folder, indexes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
