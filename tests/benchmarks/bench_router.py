"""What the router adds to a cold resolution: under 10 %.

    python tests/benchmarks/bench_router.py

The same `uv pip install --dry-run` of 400 distributions into an empty environment, through a router with nothing in
its cache, and directly; one index with everything; with 20 ms before each answer, as a network has, and with none. The
latency is of each request, bandwidth is not limited, and the reference may open as many connections as it likes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from envforge.engines.phantom import Phantom
from envforge.engines.uv import Ask
from envforge.forge.bench import bench
from envforge.forge.ground import Ground
from envforge.forge.shop import Shop
from envforge.model.profile import Index, Profile
from envforge.model.settings import Settings
from envforge.probe import interpreter
from envforge.store.layout import Home

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import PYTHON, Indexes, medians, seconds, serving, shell, tell

ROUNDS = 3
REQUIREMENTS = ("torch", "torchvision", "vllm==2.0", "xinference")


def phantom(folder: Path, python: str, version: str) -> Phantom:
    return Phantom(folder / "phantom", python=python, version=version, platform="linux", runner=sys.executable)


def through(indexes: Indexes) -> float:
    """Seconds of a resolution through a router whose caches are empty."""
    folder = Path(tempfile.mkdtemp(prefix="bench-router-"))
    try:
        facts = interpreter.facts(sys.executable)
        everything = Index(name="all", url=indexes.url("all"))
        profile = Profile(name="demo", source="", text="", python=PYTHON, indexes=(everything,))
        settings = Settings(home=folder / "home", cache=folder / "cache")
        shop = Shop(settings=settings, home=Home(settings.home, settings.cache), tell=lambda _: None)
        with bench(shop, profile, Ground(facts=facts, python=sys.executable)) as work:
            place = phantom(folder, sys.executable, facts.version)
            ask = Ask(requirements=REQUIREMENTS)
            return seconds(lambda: work.uv.resolve(place.target, ask, work.scratch, "all"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def directly(indexes: Indexes) -> float:
    """Seconds of the same resolution from the index itself, uv's cache empty."""
    folder = Path(tempfile.mkdtemp(prefix="bench-direct-"))
    try:
        place = phantom(folder, sys.executable, interpreter.facts(sys.executable).version)
        words = ("pip", "install", "--dry-run", *place.target, "--default-index", indexes.url("all"), *REQUIREMENTS)
        return seconds(lambda: shell(*words, cache=folder / "cache"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    with serving() as indexes:
        for latency in (0.0, 0.02, 0.1):
            indexes.latency(latency)
            indexes.forget()
            through(indexes)
            asked = indexes.requests()
            routed, direct = medians(ROUNDS, lambda: through(indexes), lambda: directly(indexes))
            tell(
                f"{latency * 1000:.0f} ms an answer: through the router {routed:.2f} s, directly {direct:.2f} s; "
                f"ratio {routed / direct:.2f} ({dict(asked)})"
            )


if __name__ == "__main__":
    main()
