"""One world, played: indexes served, the profile written, every run of `expect` made and checked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from . import check, world
from .cli import PYTHON, Answer, Cli
from .index import Server, serve
from .world import World


def play(name: str, root: Path) -> None:
    """Play ``tests/worlds/NAME.yaml`` in the empty folder ``root``; an AssertionError where it comes out otherwise."""
    scene = world.read(name, root / "builds")
    with serve({**scene.indexes, **scene.channels}) as server:
        Play(scene, server, root).all()


class Play:
    """The state of a world between its runs."""

    def __init__(self, scene: World, server: Server, root: Path) -> None:
        self.scene = scene
        self.server = server
        self.places = {"root": str(root), "python": PYTHON, "server": server.base, "work": str(root / "work")}
        self.places |= {f"index:{name}": server.url(name) for name in scene.indexes}
        self.places |= {f"channel:{name}": server.url(name).rstrip("/") for name in scene.channels}
        self.profile = scene.profile
        self.cli = Cli(root=root, variables=dict(self._fill(scene.variables)))
        self.planned: tuple[object, Any] | None = None

    def _fill(self, value: Any) -> Any:
        return world.fill(value, self.places)

    def all(self) -> None:
        """Write the files, then make every run."""
        for path, text in self._fill(self.scene.home_files).items():
            _write(self.cli.user / path, text)
            (self.cli.user / path).chmod(0o600)  # as netrc wants it
        for path, text in self._fill(self.scene.files).items():
            _write(self.cli.work / path, text)
        if self.scene.config is not None:
            _write(self.cli.root / "config.yaml", yaml.safe_dump(self._fill(self.scene.config)))
        if self.scene.machine is not None:
            _write(self.cli.work / "machine.json", json.dumps(machine(self.scene.machine)))
        for run in self.scene.runs:
            self._before(run.get("before", {}), run.get("environment", "demo"))
            _write(self.cli.work / "profiles" / "demo.yaml", self._profile())
            self.server.forget()
            config = ["--config", str(self.cli.root / "config.yaml")] if self.scene.config is not None else []
            arguments = [str(word) for word in self._fill(run["run"])]
            command = next(word for word in arguments if not word.startswith("-"))
            answer = self.cli.run(*config, *arguments)
            # `run` becomes the command that it runs: what that says and how it ends is its own.
            if command != "run":
                check.contract(answer)
            check.expected(self._fill(run), answer, self.cli, self.server)
            self._laws(run, answer, command)

    def _before(self, actions: Mapping[str, Any], environment: str) -> None:
        if "profile" in actions:
            edit = actions["profile"]
            self.profile = edit if isinstance(edit, str) else {**_mapping(self.profile), **edit}
        for site, entries in actions.get("publish", {}).items():
            if site in self.scene.channels:
                self.server.put(site, *world.conda(entries))
            else:
                self.server.put(site, *world.wheels(entries, self.cli.root / "builds"))
        for index, patterns in actions.get("withdraw", {}).items():
            self.server.withdraw(index, *patterns)
        for path, text in self._fill(actions.get("write", {})).items():
            _write(self.cli.root / path, text)
        for path in actions.get("lose", []):
            _lose(self.cli.root / path)
        if "variables" in actions:
            self.cli = Cli(root=self.cli.root, variables={**self.cli.variables, **self._fill(actions["variables"])})

        self._behind_its_back(actions, environment)

    def _behind_its_back(self, actions: Mapping[str, Any], environment: str) -> None:
        """What somebody does to the environment in use without envforge."""
        for path, text in self._fill(actions.get("site", {})).items():
            _lose(self.cli.site(environment) / path)
            if text is not None:
                _write(self.cli.site(environment) / path, text)
        for path, text in self._fill(actions.get("in place", {})).items():
            with (self.cli.site(environment) / path).open("a", encoding="utf-8") as stream:
                stream.write(text)
        if "pip" in actions:
            pip = [str(self.cli.link(environment) / "bin/python"), "-m", "pip", "install", "-q", "--no-deps"]
            urls = [self.server.url(name) for name in self.scene.indexes]
            links = [word for url in urls for word in ("--extra-index-url", url)]
            variables = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
            command = [*pip, "--index-url", urls[0], *links, *actions["pip"]]
            subprocess.run(command, check=True, env=variables, capture_output=True)

    def _profile(self) -> str:
        """The profile's text: as it stands where it is text, else with what every profile needs filled in."""
        if isinstance(self.profile, str):
            return str(self._fill(self.profile))
        filled = {"schema": 1, "name": "demo", "python": PYTHON, **self.profile}
        if self.scene.channels:
            channels = {"channels": [f"{{channel:{name}}}" for name in self.scene.channels]}
            filled = {"backend": "conda", **filled, "conda": {**channels, **filled.get("conda", {})}}
        entries = filled.get("indexes", list(self.scene.indexes))
        filled["indexes"] = [self._index(entry) for entry in entries]
        return yaml.safe_dump(self._fill(filled), sort_keys=False)

    def _index(self, entry: Any) -> dict[str, Any]:
        row = {"name": entry} if isinstance(entry, str) else dict(entry)
        if row["name"] in self.scene.indexes:
            row.setdefault("url", self.server.url(row["name"]))
        return row

    def _laws(self, run: Mapping[str, Any], answer: Answer, command: str) -> None:
        """What was planned is what is built, and a password of an index stands nowhere."""
        changed = check.changes(answer) if command in ("plan", "create") and answer.exit == 0 else None
        if changed is not None:
            if self.planned is not None and self.planned[0] == self.profile and not run.get("differs"):
                assert changed == self.planned[1], f"{command} differs from before: {self.planned[1]}\n{answer}"
            self.planned = (self.profile, changed)
        for index in self.scene.indexes.values():
            if index.auth is not None:
                secret = index.auth.partition(":")[2]
                assert secret not in answer.text, str(answer)
                assert not _holding(self.cli.home, secret.encode())


def machine(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A machine file: a plain Linux host with 100 GB free and no GPU, but for the given facts."""
    plain = {
        "schema": 1, "system": "Linux", "architecture": "x86_64", "glibc": "2.36", "hostname": "elsewhere",
        "gpus_status": "absent", "gpus": [], "driver": None, "cuda": None, "disk_free": 100_000_000_000,
        "pythons": [], "ambient": [], "user_site": None,
    }  # fmt: skip
    return {**plain, **facts}


def _mapping(profile: Mapping[str, Any] | str) -> Mapping[str, Any]:
    assert isinstance(profile, Mapping), "a profile given as text is replaced as a whole"
    return profile


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _lose(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _holding(folder: Path, secret: bytes) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]
