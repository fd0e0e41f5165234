"""How long `envforge audit` takes, against a stat of every file and sha256sum; and `rebuild`, against uv pip sync.

    python tests/benchmarks/bench_audit.py [ROUNDS]

One environment of 400 distributions, some 100,000 files and 1.5 GB, eight libraries of 128 MiB among them, all of it
in the cache of the kernel. Everything is timed as a whole process, the interpreter's start included: that of envforge,
that of the Python that stats, that of xargs with as many sha256sum at a time as there are cores; beside it stands the
look alone, as the audit tells it, against the walk alone. Wanted: a quick audit under 1.5 s and at most 2 times of the
stat, a deep one 1.2 times of sha256sum, rebuild 1.3 times of uv; nothing above 300 MB. What is told is the fastest of
some rounds, and the largest memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import UV, Cli, answered, forge, serving, shell, tell

ROUNDS = 7
REBUILDS = 3
_FILES = 250
_STAT = """
import os, sys, time
start = time.perf_counter()
folders = [sys.argv[1]]
while folders:
    with os.scandir(folders.pop()) as listing:
        for item in listing:
            if item.is_dir(follow_symlinks=False):
                folders.append(item.path)
            else:
                os.lstat(item.path)
print(time.perf_counter() - start)
"""
# 200 names at a time: with all that fit a command line, one core would get them all.
_SUMS = 'find "$1" -type f -print0 | xargs -0 -n 200 -P "$(nproc)" sha256sum > /dev/null'


@dataclass(frozen=True, kw_only=True)
class Cost:
    """``seconds`` of the whole process, ``memory``: the largest (bytes) that it or a child of it had at a time.

    ``inside``: seconds as the process itself told them, without its start; 0 where it tells none.
    """

    seconds: float
    memory: int
    inside: float = 0.0


def cost(start: Callable[[], subprocess.Popen[str]]) -> Cost:
    """What a command takes that must come out well.

    It must say little: what this process holds in memory counts as its children's too, until they run a program.
    """
    begun = time.perf_counter()
    child = start()
    assert child.stdout is not None
    with child.stdout:
        said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{child.args!r} ended with {child.returncode}")
    return Cost(seconds=seconds, memory=usage.ru_maxrss * 1024, inside=_inside(said))


def _inside(said: str) -> float:
    try:
        value = json.loads(said)
    except ValueError:
        return 0.0
    return value if isinstance(value, float) else float(value["data"]["checked"]["seconds"])


def command(*words: str, **variables: str) -> Cost:
    environment = {"PATH": os.environ["PATH"], **variables}
    return cost(lambda: subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment))


def envforge(cli: Cli, *words: str) -> Cost:
    """As a person would start it, without ``--json``."""
    return cost(lambda: cli._popen(words))


def best(rounds: int, *actions: Callable[[], Cost]) -> list[Cost]:
    """The least time and the largest memory of each; in turns, so that a busy machine is unfair to none."""
    said: list[list[Cost]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, results in zip(actions, said, strict=True):
            results.append(action())
    return [
        Cost(
            seconds=min(each.seconds for each in costs),
            memory=max(each.memory for each in costs),
            inside=min(each.inside for each in costs),
        )
        for costs in said
    ]


def row(what: str, ours: Cost, theirs: Cost | None = None) -> None:
    reference = f", against {theirs.seconds:.2f} s: ratio {ours.seconds / theirs.seconds:.2f}" if theirs else ""
    tell(f"{what}: {ours.seconds:.2f} s, {ours.memory / 1e6:.0f} MB{reference}")


def audits(cli: Cli, rounds: int) -> None:
    prefix = str(cli.link().resolve())
    seen = cli.home / "records" / "demo" / cli.link().resolve().name / "seen.json"

    def first() -> Cost:
        with suppress(FileNotFoundError):
            seen.unlink()
        return envforge(cli, "audit", "demo")

    def stat() -> Cost:
        return command(sys.executable, "-c", _STAT, prefix)

    def sums() -> Cost:
        return command("sh", "-c", _SUMS, "sh", prefix)

    sums()  # all of it is in memory from now on
    opening, again, told, walked = best(
        rounds, first, lambda: envforge(cli, "audit", "demo"), lambda: envforge(cli, "--json", "audit", "demo"), stat
    )
    deep, hashed = best(rounds, lambda: envforge(cli, "audit", "demo", "--deep"), sums)
    row("quick audit, the first after the build", opening, walked)
    row("quick audit, any later one", again, walked)
    tell(
        f"  its look alone {told.inside:.2f} s, against {walked.inside:.2f} s: ratio {told.inside / walked.inside:.2f}"
    )
    row("deep audit", deep, hashed)


def sync(folder: Path, lock: Path) -> Callable[[], Cost]:
    """`uv pip sync` of ``lock`` into a new venv, with a cache of its own that has everything."""
    venv, cache = folder / "venv", folder / "uv-cache"

    def synced() -> Cost:
        shutil.rmtree(venv, ignore_errors=True)
        shell("venv", "--quiet", "--python", sys.executable, str(venv), cache=cache)
        words: Sequence[str] = ("pip", "sync", "--quiet", "--python", str(venv / "bin" / "python"), str(lock))
        return command(UV, *words, HOME=str(folder), UV_CACHE_DIR=str(cache))

    synced()
    return synced


def rebuilds(cli: Cli, folder: Path) -> None:
    snapshots = cli.home / "records" / "demo" / cli.link().resolve().name / "snapshots"
    by_hand = sync(folder, max(snapshots.glob("pylock.*.toml")))

    def rebuild() -> Cost:
        old = cli.link().resolve()
        taken = envforge(cli, "rebuild", "demo")
        shutil.rmtree(old)  # else the disk fills
        return taken

    rebuild()
    rebuilt, synced = best(REBUILDS, rebuild, by_hand)
    row("rebuild from the cache", rebuilt, synced)


def main(rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-audit-"))
    try:
        with serving(files=_FILES, heavy=True) as indexes:
            cli = forge(folder / "forge", indexes)
            data = answered(cli.run("create", "demo")).data
            tell(f"{data['files']} files, {data['bytes'] / 1e9:.1f} GB")
            audits(cli, rounds)
            rebuilds(cli, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
