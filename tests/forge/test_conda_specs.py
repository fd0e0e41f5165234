"""What is asked of channels: which of several specs count, and from which channel a package comes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from kit import packages
from kit.channel import SUBDIR, Channel
from kit.check import ended
from kit.cli import PYTHON, Answer, Cli
from kit.index import Fault, Index, Server, serve
from kit.server import Site

FORGE = (packages.python(), *(packages.module("tool", version) for version in ("1.0", "2.0")), packages.prefixed())
LOW = (packages.module("tool", "9.0"), packages.prefixed("other"))
SITES: Mapping[str, Site] = {
    "forge": Channel(packages=FORGE),
    "low": Channel(packages=LOW),
    "ill": Channel(packages=FORGE, faults=(Fault(page="*", status=500),)),
    "pypi": Index(),
}


class World:
    def __init__(self, server: Server, cli: Cli) -> None:
        self.server = server
        self.cli = cli

    def plan(self, specs: Sequence[str], channels: Sequence[str] = ("forge",), *, step: Sequence[str] = ()) -> Answer:
        """A channel is one of the server's, or a URL."""
        places = [each if ":" in each else self.server.url(each) for each in channels]
        steps = [{"name": "then", "conda": [*step]}] if step else []
        conda = {"channels": places, "packages": [*specs]}
        self.cli.profile(self.server.url("pypi"), steps, backend="conda", conda=conda)
        return self.cli.run("plan", "demo")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serve(SITES) as server:
        yield World(server, Cli(root=tmp_path))


def base(answer: Answer) -> dict[str, str]:
    return {each["name"]: each["to"] for each in ended(answer).data["base"]}


@pytest.mark.parametrize("step", [False, True])
def test_a_package_comes_from_the_first_channel_that_has_its_name(world: World, step: bool) -> None:
    more: Mapping[str, Any] = {"step": ["tool >=3"]} if step else {}
    error = ended(world.plan([] if step else ["tool >=3"], ["forge", "low"], **more), 1).document["error"]
    assert (error["code"], "strict channel priority" in error["cause"]) == ("unsolvable", True)
    assert "put the one first" in error["hint"]
    assert base(world.plan(["tool <2", "other"], ["forge", "low"]))["other"] == "1.0"
    assert base(world.plan(["tool >=3"], ["low", "forge"]))["tool"] == "9.0"


@pytest.mark.slow
def test_all_specs_of_one_list_hold_and_a_later_list_replaces_an_earlier(world: World) -> None:
    assert base(world.plan(["tool >=1", "tool <2"]))["tool"] == "1.0"
    assert ended(world.plan(["tool <2", "tool >=2"]), 1).document["error"]["code"] == "unsolvable"
    answer = ended(world.plan(["tool <2"], step=["tool >=2"]))
    assert [each["to"] for each in answer.data["steps"][0]["changes"]] == ["2.0"]


@pytest.mark.parametrize("step", [False, True])
def test_the_python_of_the_profile_holds_whatever_else_is_asked_of_it(world: World, step: bool) -> None:
    minor = int(PYTHON.partition(".")[2])
    newer = packages.module("python", f"3.{minor + 1}.0")
    world.server.put("forge", newer)
    more: Mapping[str, Any] = {"step": [f"python >={PYTHON}"]} if step else {}
    answer = world.plan([] if step else [f"python >={PYTHON}"], **more)
    assert base(answer)["python"] == FORGE[0].version
    for asked in (f"python 3.{minor + 1}.*", "python <3"):
        more = {"step": [asked]} if step else {}
        assert ended(world.plan([] if step else [asked], **more), 1).document["error"]["code"] == "unsolvable"


def on_disk(folder: Path, change: Mapping[str, Any]) -> str:
    """The channel ``forge`` as a folder; ``change``: of what it says of prefixed. Its URL."""
    for subdir in (SUBDIR, "noarch"):
        (folder / subdir).mkdir(parents=True)
        listed = {}
        for package in FORGE:
            if package.subdir == subdir:
                digest = hashlib.sha256(package.bytes()).hexdigest()
                more = change if package.name == "prefixed" else {}
                listed[package.filename] = {**package.index(), "sha256": digest, **more}
                (folder / subdir / package.filename).write_bytes(package.bytes())
        (folder / subdir / "repodata.json").write_text(json.dumps({"packages": listed}))
    return folder.as_uri()


@pytest.mark.slow
def test_a_channel_on_disk_is_held_to_its_hashes(world: World, tmp_path: Path) -> None:
    lying = on_disk(tmp_path / "lying channel", {"sha256": "0" * 64})
    assert base(world.plan(["prefixed"], [lying]))
    assert ended(world.cli.run("create", "demo"), 1).document["error"]["code"] == "hash-mismatch"
    assert not world.cli.link().exists()
    true = on_disk(tmp_path / "channel", {})
    ended(world.plan(["prefixed"], [true]))
    ended(world.cli.run("create", "demo"))
    # What was checked once is not asked for again.
    (tmp_path / "channel" / SUBDIR / FORGE[-1].filename).write_bytes(b"other")
    ended(world.cli.run("rebuild", "demo"))


@pytest.mark.parametrize(
    ("listed", "code"),
    [
        ("<html>please log in</html>", "channel-broken"),
        ("", "channel-broken"),
        ('{"packages": {"python-1-0.tar.bz2": {"name": "python", "version": "!! x"}}}', "channel-broken"),
        ("{}", "unsolvable"),
        (None, "channel-not-found"),
    ],
)
def test_a_channel_that_is_none_is_told(world: World, tmp_path: Path, listed: str | None, code: str) -> None:
    for subdir in (SUBDIR, "noarch") if listed is not None else ():
        (tmp_path / "channel" / subdir).mkdir(parents=True)
        (tmp_path / "channel" / subdir / "repodata.json").write_text(listed or "")
    error = ended(world.plan([], [(tmp_path / "channel").as_uri()]), 1).document["error"]
    assert (error["code"], bool(error["cause"]), bool(error["hint"])) == (code, True, True)


@pytest.mark.slow
def test_a_channel_that_is_ill_is_told(world: World) -> None:
    error = ended(world.plan([], ["ill"]), 1).document["error"]
    assert (error["code"], "500" in error["cause"]) == ("channel-unreachable", True)
