"""How long a plan of 400 distributions takes, against `uv pip compile` of the same requirements.

    python tests/benchmarks/bench_plan.py

Whole processes, caches cold and warm, on an index with PEP 658 and on one without. The reference asks one index that
has everything (three would cost it an answer 404 a name). Wanted: warm at most 2 times or 3 s, whichever is larger; a
cold plan makes at most 3 requests a distribution with PEP 658, 5 without.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import PACKAGES, REQUIREMENTS, Indexes, answered, forge, medians, seconds, serving, shell, tell

ROUNDS = 3


def measure(folder: Path, indexes: Indexes, title: str) -> None:
    cli = forge(folder / "forge", indexes)
    cache = folder / "uv-cache"
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(REQUIREMENTS) + "\n")

    def plan() -> float:
        return seconds(lambda: answered(cli.run("plan", "demo")))

    def compiled() -> float:
        words = ("pip", "compile", "--quiet", "--default-index", indexes.url("all"), str(requirements))
        return seconds(lambda: shell(*words, cache=cache))

    indexes.forget()
    cold = plan()
    asked = indexes.requests()
    reference = compiled()
    indexes.forget()
    warm, warm_reference = medians(ROUNDS, plan, compiled)
    again = indexes.requests()
    found = sum(len(step["changes"]) for step in cli.run("plan", "demo").data["steps"])
    per = sum(asked.values()) / PACKAGES
    tell(f"{title}: {found} changes in 4 steps")
    tell(f"  cold: plan {cold:.2f} s, compile {reference:.2f} s; ratio {cold / reference:.2f}")
    tell(f"  warm: plan {warm:.2f} s, compile {warm_reference:.2f} s; ratio {warm / warm_reference:.2f}")
    tell(f"  requests of a cold plan: {per:.2f} a distribution {dict(asked)}; of {ROUNDS} warm rounds: {dict(again)}")
    answer = cli.run("plan", "demo")
    tell("  steps: " + ", ".join(f"{step['name']} {step['seconds']:.2f} s" for step in answer.data["steps"]))


def main() -> None:
    for metadata in (True, False):
        folder = Path(tempfile.mkdtemp(prefix="bench-plan-"))
        try:
            with serving(metadata=metadata, large=True) as indexes:
                measure(folder, indexes, f"PEP 658 {'served' if metadata else 'not served'}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
