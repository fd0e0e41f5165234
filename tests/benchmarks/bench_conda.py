"""How long conda packages take, against py-rattler alone and against the start of the process that does it.

    PYTHONPATH=src:tests python tests/benchmarks/bench_conda.py

Serves a channel of a Python, a package of 1,700 files and 400 more on loopback. Prints, from a warm cache: what laying
out the prefix takes besides the start of its process (less than 1 s is wanted), the same with the proof of every file
by its hash, and a solve against py-rattler's own in a process that does nothing else (1.1 is wanted).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kit import packages
from kit.channel import SUBDIR, Channel, Package
from kit.server import serve

from envforge.engines.channels import Channel as Place
from envforge.engines.conda import Conda
from envforge.forge.ground import virtual
from envforge.model.state import packages as packages_of
from envforge.probe import machine as machines
from envforge.probe import prefix as prefixes
from envforge.system.http import Proxies, certificates

FILES = 1700
OTHERS = 400
ROUNDS = 7
SPECS = ("python", "many")
ALONE = """
import asyncio, os, sys, rattler
async def main():
    client = rattler.Client.from_config(rattler.config.Config())
    gateway = rattler.Gateway(sys.argv[2], client=client)
    names = await gateway.names([rattler.Channel(sys.argv[1])], [rattler.Subdir(sys.argv[3]), rattler.Subdir("noarch")])
    await rattler.solve([rattler.Channel(sys.argv[1])], ["python", "many"], gateway=gateway)
import rattler.config
asyncio.run(main())
os._exit(0)
"""


def channel() -> Channel:
    many = {f"share/many/{number // 100}/{number}.txt": f"{number}\n" * 200 for number in range(FILES)}
    others = [
        replace(packages.module(f"other-{number}", f"1.{release}"), build_number=release)
        for number in range(OTHERS)
        for release in range(3)
    ]
    return Channel(packages=[packages.python(), Package(name="many", version="1.0", files=many), *others])


def fastest(*actions: Callable[[], object]) -> list[float]:
    """Seconds of the fastest of some rounds, for each; in turns, so that a busy machine is unfair to none."""
    seconds = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for position, action in enumerate(actions):
            start = time.perf_counter()
            action()
            seconds[position] = min(seconds[position], time.perf_counter() - start)
    return seconds


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-conda-"))
    roots = folder / "roots.pem"
    roots.write_text(certificates())
    try:
        with serve({"forge": channel()}) as server:
            url = server.url("forge").rstrip("/")
            engine = Conda(
                channels=(Place(name="forge", place=url),), platform=SUBDIR, virtual=virtual(machines.look(folder)),
                cache=folder / "cache", scratch=folder, proxies=Proxies(), roots=roots,
            )  # fmt: skip
            wanted = engine.solve(SPECS, what="the benchmark")
            prefix = folder / "prefix"

            def lay() -> None:
                shutil.rmtree(prefix, ignore_errors=True)
                engine.install(prefix, wanted, what="the benchmark")

            def prove() -> None:
                assert not prefixes.damaged(prefix, packages_of(wanted).keys())

            lay()
            started, laid, proved = fastest(lambda: engine.uncached(wanted), lay, prove)
            words = [sys.executable, "-I", "-c", ALONE, url, str(folder / "alone"), SUBDIR]
            ours, alone = fastest(
                lambda: engine.solve(SPECS, what="the benchmark"), lambda: subprocess.run(words, check=True)
            )
        sys.stdout.write(f"process that looks into the cache  {started:.3f} s\n")
        sys.stdout.write(f"prefix of {FILES:,} files           {laid:.3f} s, besides that {laid - started:.3f} s\n")
        sys.stdout.write(f"every file proved by its hash      {proved:.3f} s\n")
        sys.stdout.write(f"solve {ours:.3f} s, py-rattler alone {alone:.3f} s: {ours / alone:.2f}\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
