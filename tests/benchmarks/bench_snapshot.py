"""How long a look at a large prefix takes, against a stat of every file plus the parsing of every RECORD.

    python tests/benchmarks/bench_snapshot.py [FOLDER]

Builds a prefix of 400 distributions and 90,000 files (kept in FOLDER if given), then prints one ratio: at most 2.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from envforge.model.snapshot import Snapshot
from envforge.probe.prefix import look
from envforge.store import snapshots
from envforge.store.layout import Home

DISTRIBUTIONS = 400
FILES = 225
ROUNDS = 7


def build(prefix: Path) -> None:
    """400 distributions of 225 files in folders of 20."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    data = b"x = 1\n"
    declared = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    for number in range(DISTRIBUTIONS):
        name = f"package_{number}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n" + "text\n" * 2000)
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        (info / "INSTALLER").write_text("uv")
        rows = [f"{info.name}/{file},{declared},6" for file in ("METADATA", "WHEEL", "INSTALLER")]
        for position in range(FILES - 4):
            folder = site / name / f"part_{position // 20}"
            if position % 20 == 0:
                folder.mkdir(parents=True)
            (folder / f"module_{position}.py").write_bytes(data)
            rows.append(f"{name}/part_{position // 20}/module_{position}.py,{declared},6")
        (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))


def reference(prefix: Path) -> int:
    """A stat of every file and every RECORD through the csv module."""
    count = 0
    folders = [str(prefix)]
    while folders:
        with os.scandir(folders.pop()) as listing:
            for item in listing:
                if item.is_dir(follow_symlinks=False):
                    folders.append(item.path)
                    continue
                item.stat(follow_symlinks=False)
                count += 1
                if item.name == "RECORD":
                    with Path(item.path).open(newline="", encoding="utf-8") as stream:
                        rows = list(csv.reader(stream))
                    assert rows
    return count


def fastest(*actions: Callable[[], object]) -> list[float]:
    """Seconds of the fastest of some rounds, for each; in turns, so that a busy machine is unfair to none."""
    seconds = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for position, action in enumerate(actions):
            start = time.perf_counter()
            action()
            seconds[position] = min(seconds[position], time.perf_counter() - start)
    return seconds


def main(folder: Path) -> None:
    prefix = folder / "prefix"
    if not prefix.exists():
        build(prefix)
    files = reference(prefix)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = look(prefix)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(seen.files) == files
    home = Home(folder / "home", folder / "cache")
    home.ensure()
    snapshot = Snapshot(
        environment="x", generation=1, step=1, step_name=None, made="", by="", machine="", driver=None, python="3.11",
        engine="uv", state=seen.state, files=seen.files,
    )  # fmt: skip
    base, looking, writing = fastest(
        lambda: reference(prefix), lambda: look(prefix), lambda: snapshots.write(home, snapshot, None)
    )
    lines = (
        f"{len(seen.state)} distributions, {files} files; look adds {memory:.0f} MiB",
        f"stat and parse {base:.2f} s; look {looking:.2f} s; write the snapshot {writing:.2f} s",
        f"ratio of look {looking / base:.2f}; with writing {(looking + writing) / base:.2f}",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
