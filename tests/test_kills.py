"""SIGKILL at any moment of what builds: the environment in use passes its audit, and the next command ends well.

The moments are drawn from the seed in the test's name; what is printed with a failure says which they were.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kit import packages
from kit.channel import Channel
from kit.check import ended
from kit.cli import Cli, finish
from kit.index import Index, serve
from kit.wheels import Wheel

ARTEFACTS = [
    Wheel(name="six", version="1.0.0"),
    Wheel(name="six", version="2.0.0"),
    Wheel(name="idna", version="1.0.0", files={f"idna/part{number}.py": f"x = {number}\n" for number in range(50)}),
]
STEPS = [
    {"name": "old", "install": ["six<2"]},
    {"name": "more", "install": ["idna"]},
    {"name": "new", "pin": ["six>=2"]},
]
PACKAGES = [
    packages.python(),
    packages.prefixed(),
    packages.module("tool", "1.0", files={f"tool/part{number}.py": f"x = {number}\n" for number in range(50)}),
]
FIRST = "first"
FORGED = "forged"
WHOLE = {"six": "2.0.0", "idna": "1.0.0"}


@dataclass(frozen=True, kw_only=True)
class Way:
    """A command to kill. ``name``: its environment, which ``holds`` that when it has ended.

    ``spoil``: for a verb that mends in place, what is done to the environment before; it need not conform in between.
    """

    words: tuple[str, ...]
    name: str = "demo"
    holds: Mapping[str, str] = field(default_factory=lambda: WHOLE)
    spoil: Callable[[Cli], None] | None = None


def spoil(cli: Cli) -> None:
    """All that a repair has to do: a distribution gone, one changed in place, one that is another, and foreign code."""
    if cli.installed() != WHOLE:
        ended(cli.run("create", "demo", "--replace"))
    site = cli.site()
    shutil.rmtree(site / "idna", ignore_errors=True)
    with (site / "six/__init__.py").open("a") as stream:
        stream.write("x = 1\n")
    (site / "six-2.0.0.dist-info/RECORD").unlink(missing_ok=True)
    (site / "stray.pth").write_text("import os\n")


def spoil_packages(cli: Cli) -> None:
    """The same of conda packages: one gone, its record too, and one changed in place, which the cache shares."""
    prefix, site = cli.link("forge").resolve(), cli.site("forge")
    shutil.rmtree(prefix / "share/prefixed", ignore_errors=True)
    for path in prefix.glob("conda-meta/prefixed-*.json"):
        path.unlink()
    part = site / "tool/part7.py"
    part.write_text("x = 1\n" if not part.exists() else part.read_text() + "x = 1\n")


# A verb more is a line more.
WAYS = {
    "create": Way(words=("create", "demo", "--name", FIRST), name=FIRST),
    "replace": Way(words=("create", "demo", "--replace")),
    "rebuild": Way(words=("rebuild", "demo")),
    "repair": Way(words=("repair", "demo"), spoil=spoil),
    "create-conda": Way(words=("create", "forge", "--name", FORGED), name=FORGED, holds=WHOLE | {"tool": "1.0"}),
    "rebuild-conda": Way(words=("rebuild", "forge"), name="forge", holds=WHOLE | {"tool": "1.0"}),
    "repair-conda": Way(words=("repair", "forge"), name="forge", holds=WHOLE | {"tool": "1.0"}, spoil=spoil_packages),
    "rollback": Way(words=("rollback", "demo", "demo/1.2"), holds={"six": "1.0.0", "idna": "1.0.0"}),
}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """An environment `demo` in use, whose files are all in the cache; what was killed before has left its traces."""
    with serve({"pypi": Index(artefacts=ARTEFACTS), "forge": Channel(packages=PACKAGES)}) as server:
        cli = Cli(root=tmp_path_factory.mktemp("kills"))
        cli.profile(server.url("pypi"), STEPS, smoke=[{"import": ["six", "idna"]}])
        ended(cli.run("create", "demo"))
        conda = {"channels": [server.url("forge")], "packages": ["prefixed"]}
        steps = [STEPS[0], {"name": "tool", "conda": ["tool"]}, *STEPS[1:]]
        cli.profile(
            server.url("pypi"), steps, "forge", backend="conda", conda=conda, smoke=[{"import": ["six", "tool"]}]
        )
        ended(cli.run("create", "forge"))
        yield cli


def conforms(cli: Cli, name: str) -> None:
    """The environment in use, if there is one, is what was recorded."""
    if cli.link(name).exists():
        answer = ended(cli.run("audit", name))
        assert [each for each in answer.document["findings"] if each["severity"] == "error"] == [], str(answer)


def family(pid: int) -> list[int]:
    """A process and all below it, those first that have most above them."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return found[::-1]


def kill(child: subprocess.Popen[str], *, children: bool) -> None:
    """End a command by SIGKILL, alone or with all that it started."""
    for pid in family(child.pid) if children else [child.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    answer = finish(child)
    assert "Traceback" not in answer.stderr, answer.stderr
    assert answer.exit in (0, -signal.SIGKILL), str(answer)


def killed(cli: Cli, way: Way, draw: random.Random, lasts: float) -> None:
    """Kill the way's command at a moment, then do it again."""
    said = " ".join(way.words)
    moment, children = draw.uniform(0, lasts), draw.random() < 0.5
    print(f"{said}: killed{' with its children' * children} after {moment:.3f} s of {lasts:.3f} s")  # noqa: T201 - for whoever reads of a failure
    if way.spoil is not None:
        way.spoil(cli)
    child = cli.start(*way.words)
    with suppress(subprocess.TimeoutExpired):
        child.wait(moment)
    kill(child, children=children)
    if way.spoil is None:
        conforms(cli, way.name)
    # Killed after the switch, there is something to replace.
    more = ["--replace"] if cli.link(way.name).exists() and way.words[0] == "create" else []
    ended(cli.run(*dict.fromkeys([*way.words, *more])))
    assert cli.installed(way.name) == way.holds
    left = [path.name for path in (cli.home / "envs").iterdir() if path.name.startswith(".")]
    assert left == [], "no half made link"
    assert list((cli.home / "cache/scratch").iterdir()) == []
    if way.name in {FIRST, FORGED} or way.spoil is not None:
        conforms(cli, way.name)
    if way.name in {FIRST, FORGED}:
        ended(cli.run("remove", way.name))


def undisturbed(cli: Cli, way: Way) -> float:
    """How long the way's command takes, in seconds."""
    if way.spoil is not None:
        way.spoil(cli)
    elif way.words == ("rebuild", "demo") and cli.installed() != way.holds:
        ended(cli.run("create", "demo", "--replace"))  # a rollback came before
    started = time.monotonic()
    ended(cli.run(*way.words))
    lasts = time.monotonic() - started
    if way.name in {FIRST, FORGED}:
        ended(cli.run("remove", way.name))
    return lasts


@pytest.mark.parametrize("way", ["create", "repair", "create-conda"])
def test_killed_at_a_moment(cli: Cli, way: str) -> None:
    lasts = undisturbed(cli, WAYS[way])
    draw = random.Random(way)  # noqa: S311 - the same moments every time
    killed(cli, WAYS[way], draw, lasts)
    conforms(cli, "demo")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5), ids=lambda seed: f"seed-{seed}")
def test_killed_at_five_moments_more(cli: Cli, way: str, seed: int) -> None:
    lasts = undisturbed(cli, WAYS[way])
    draw = random.Random(f"{way} {seed}")  # noqa: S311 - as above
    for _ in range(5):
        killed(cli, WAYS[way], draw, lasts)
    conforms(cli, "demo")
