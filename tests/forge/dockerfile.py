"""A Dockerfile done in a folder, with what the base image would have in ``base``: docker itself is not needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Image:
    """``health``: the words of the check."""

    root: Path
    variables: Mapping[str, str]
    health: tuple[str, ...]

    def healthy(self) -> bool:
        done = subprocess.run(self.health, env=self.variables, cwd=self.root, check=False, capture_output=True)
        return done.returncode == 0


def build(dockerfile: str, root: Path, *beside: Path) -> Image:
    """Do every instruction, ``root`` standing for ``/opt``; ``beside``: the files that are copied by name."""
    variables = {"HOME": str(root), "PIP_CONFIG_FILE": os.devnull, "PATH": f"{root}/base:/usr/bin:/bin"}
    files = {path.name: path for path in beside}
    health: tuple[str, ...] = ()
    for word, rest, held in instructions(dockerfile):
        inside = rest.replace("/opt/", f"{root}/")
        if word == "ENV":
            name, _, value = inside.partition("=")
            variables[name] = re.sub(r"\\(.)", r"\1", value[1:-1]).replace("${PATH}", variables["PATH"])
        elif word == "COPY" and held:
            Path(inside).parent.mkdir(parents=True, exist_ok=True)
            Path(inside).write_text(held.replace("/opt/", f"{root}/"), encoding="utf-8")
        elif word == "COPY" and not inside.startswith("--from"):
            source, target = json.loads(inside)
            Path(target).mkdir(parents=True)
            shutil.copy(files[source], target)
        elif word == "RUN":
            plain = re.sub(r"^--mount=\S+ ", "", inside)
            argv = json.loads(plain) if plain.startswith("[") else shlex.split(plain)
            done = subprocess.run(argv, env=variables, cwd=root, check=False, capture_output=True, text=True)
            assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        elif word == "HEALTHCHECK":
            health = tuple(json.loads(inside.partition(" CMD ")[2]))
    return Image(root=root, variables=variables, health=health)


def instructions(dockerfile: str) -> list[tuple[str, str, str]]:
    """Instruction, what follows it, and the text that it holds: as docker reads a file without continued lines."""
    found: list[tuple[str, str, str]] = []
    lines = iter(dockerfile.splitlines())
    for line in lines:
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        assert re.fullmatch(r"ARG|FROM|LABEL|ENV|RUN|COPY|HEALTHCHECK", word), line
        held = ""
        document = re.match(r"<<'(\w+)' (\S+)$", rest)
        if document:
            for each in lines:
                if each == document[1]:
                    break
                held += f"{each}\n"
            rest = document[2]
        found.append((word, rest, held))
    return found
