"""What `run` pays to see that nothing has changed: 400 distributions and 90,000 files, against a stat of each file.

    python tests/benchmarks/bench_launch.py

Then `run ENV true` with a stamp against the same without one, which looks at nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import envforge

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_snapshot import build, fastest
from benchmarks.serving import medians, seconds, tell
from forge import small_home

from envforge.forge.launching import changed, remember
from envforge.probe import launch

ROUNDS = 9


def main(folder: Path) -> None:
    shop = small_home.shop(folder / "home")
    small_home.environment(shop)
    prefix = shop.home.prefix("small", 1)
    build(prefix)
    files = [path for path in map(str, prefix.rglob("*")) if not os.path.isdir(path)]  # noqa: PTH112 - texts suffice
    stamp = launch.stamp(prefix)
    remember(shop.home, "small", 1, stamp)
    kept = shop.home.record("small", 1) / "stamp.json"

    def start() -> float:
        command = [sys.executable, "-m", "envforge", "run", "--strict", "small", "true"]
        if not kept.exists():
            command.remove("--strict")
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(envforge.__file__).parent.parent)}
        variables["ENVFORGE_HOME"] = str(shop.home.root)
        return seconds(lambda: subprocess.run(command, env=variables, check=True))

    def without() -> float:
        kept.rename(kept.with_suffix(".away"))
        try:
            return start()
        finally:
            kept.with_suffix(".away").rename(kept)

    check, stats = fastest(lambda: changed(shop.home, "small", 1, prefix), lambda: [os.lstat(path) for path in files])
    tell(
        f"{len(stamp)} paths in the stamp, {len(files)} files; stamp {check * 1000:.1f} ms; stats {stats * 1000:.0f} ms"
    )
    looked, bare = medians(ROUNDS, start, without)
    tell(f"run with a stamp {looked * 1000:.0f} ms; without {bare * 1000:.0f} ms; ratio {looked / bare:.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
