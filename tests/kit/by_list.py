"""What stands for micromamba where there is none: py-rattler does what an explicit list says, and nothing more.

micromamba create|install --yes [--root-prefix FOLDER] --prefix PREFIX --file LIST
micromamba remove --yes --force --prefix PREFIX NAME...
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import rattler
from rattler.explicit_environment import ExplicitEnvironmentSpec


def put_on_path(folder: Path) -> None:
    """Make ``folder/micromamba``."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "micromamba"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def _installed(prefix: Path) -> dict[str, rattler.RepoDataRecord]:
    found = (rattler.PrefixRecord.from_path(path) for path in (prefix / "conda-meta").glob("*.json"))
    return {record.name.normalized: record for record in found}


async def _listed(path: Path) -> dict[str, rattler.RepoDataRecord]:
    """The records of the packages that are listed, each of which has the hash that stands there."""
    specs = [rattler.MatchSpec.from_url(entry.url) for entry in ExplicitEnvironmentSpec.from_path(path).packages]
    places = {url.rsplit("/", 2)[0] for url in _urls(path)}
    platforms = [rattler.Subdir.current(), rattler.Subdir("noarch")]
    found = await rattler.Gateway(Path.home() / "repodata").query(
        [rattler.Channel(place) for place in places], platforms, specs, recursive=False
    )
    records = {record.name.normalized: record for records in found for record in records}
    assert len(records) == len(specs), f"{path} lists what is not there"
    return records


def _urls(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0] for line in lines[lines.index("@EXPLICIT") + 1 :]]


async def _main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("create", "install", "remove"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--yes", action="store_true", required=True)
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--root-prefix")
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_intermixed_args(arguments)
    prefix = asked.prefix.absolute()
    assert (asked.verb == "create") is not prefix.exists(), f"{prefix} is there, or it is not"
    wanted = {name: record for name, record in _installed(prefix).items() if name not in asked.names}
    if asked.file:
        wanted |= await _listed(asked.file)
    cache = Path.home() / "pkgs"
    await rattler.install([*wanted.values()], prefix, cache_dir=cache, show_progress=False)


if __name__ == "__main__":
    try:
        asyncio.run(_main(sys.argv[1:]))
    except Exception as error:  # noqa: BLE001 - whatever it was, it is told
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    # py-rattler may crash while an interpreter ends, its work done.
    os._exit(0)
