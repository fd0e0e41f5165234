"""The real command in a child process, with a home and a working folder of its own and nothing of the host's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

import envforge

from .plain import plainly
from .warm import Forked

# PYTHONPATH would be ambient configuration to envforge: the code is put in reach by the child itself instead.
_LAUNCH = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('envforge', run_name='__main__')"
# What is installed is started as its user starts it.
_INSTALLED = Path(envforge.__file__).is_relative_to(sys.prefix)
_AT_START = re.compile("PYTHON|LD_|LC_|LANG|SSL_")  # variables that are read once
_LIMIT = 120.0
_COMES_ALONG = {"pip", "setuptools"}
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it said."""

    argv: tuple[str, ...]
    exit: int
    stdout: str
    stderr: str

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON envelope on stdout. Raises AssertionError where there is anything else."""
        try:
            document = json.loads(self.stdout)
        except ValueError:
            document = None
        assert isinstance(document, dict), f"stdout holds no JSON document\n{self}"
        return document

    @property
    def data(self) -> dict[str, Any]:
        data = self.document["data"]
        assert isinstance(data, dict)
        return data

    @property
    def text(self) -> str:
        """All that a user can read: both streams, and the strings of the document without JSON's escapes."""
        try:
            strings = "\n".join(_strings(json.loads(self.stdout)))
        except ValueError:
            strings = ""
        return f"{self.stdout}\n{strings}\n{self.stderr}"

    def __str__(self) -> str:
        return f"$ envforge {' '.join(self.argv)}\nexit {self.exit}\n{self.stdout}\n--- stderr\n{self.stderr}"


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _strings(item)]
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []


@dataclass(frozen=True, kw_only=True)
class Cli:
    """``root`` holds all: the user's home (``user``), ENVFORGE_HOME (``forge``), the working folder (``work``).

    ``plain``: bound by the permissions of files, as root is not.
    """

    root: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    plain: bool = False

    def __post_init__(self) -> None:
        for folder in (self.user, self.work / "profiles"):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def user(self) -> Path:
        return self.root / "user"

    @property
    def home(self) -> Path:
        return self.root / "forge"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def profile(self, index: str, steps: Sequence[Any], name: str = "demo", **more: Any) -> None:
        """Write a profile to where a name finds it; ``index``: the URL of its only one."""
        data = {"schema": 1, "name": name, "python": PYTHON, "indexes": [{"name": "pypi", "url": index}]}
        text = yaml.safe_dump({**data, "steps": [*steps], **more}, sort_keys=False)
        (self.work / f"profiles/{name}.yaml").write_text(text)

    def link(self, environment: str = "demo") -> Path:
        return self.home / "envs" / environment

    def site(self, environment: str = "demo") -> Path:
        """site-packages of the generation in use."""
        return next((self.link(environment).resolve() / "lib").glob("python*")) / "site-packages"

    def installed(self, environment: str = "demo") -> dict[str, str]:
        """Canonical name -> version by the dist-info folders, without the pip that comes with a Python.

        Empty where no environment is in use.
        """
        if not self.link(environment).exists():
            return {}
        names = [path.name.removesuffix(".dist-info") for path in self.site(environment).glob("[!~]*.dist-info")]
        pairs = [name.rsplit("-", 1) for name in names]
        found = {name.lower().replace("_", "-"): version for name, version in pairs}
        return {name: version for name, version in found.items() if name not in _COMES_ALONG}

    def _popen(self, arguments: tuple[str, ...]) -> subprocess.Popen[str]:
        base = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve().parent)
        environment = {
            "PATH": os.pathsep.join([base, "/usr/bin", "/bin"]),
            "HOME": str(self.user),
            "USER": "tester",
            "ENVFORGE_HOME": str(self.home),
            "TMPDIR": str(self.root),
            **self.variables,
        }
        source = str(Path(envforge.__file__).parent.parent)
        if not (self.plain or _INSTALLED or any(_AT_START.match(name) for name in self.variables)):
            return Forked(source, arguments, self.work, environment)
        launch = [f"{sys.prefix}/bin/envforge"] if _INSTALLED else [sys.executable, "-c", _LAUNCH, source]
        return subprocess.Popen(
            [*launch, *arguments], cwd=self.work, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=plainly if self.plain else None,  # noqa: PLW1509 - it takes no lock
        )  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command with ``--json`` in a session of its own and do not wait for it."""
        return self._popen(("--json", *arguments))

    def run(self, *arguments: str) -> Answer:
        """Run a command with ``--json`` to its end."""
        return finish(self.start(*arguments), arguments)


def finish(child: subprocess.Popen[str], arguments: tuple[str, ...] = ()) -> Answer:
    """Wait for a started command; one that takes longer than the limit is ended, and that is a failure."""
    try:
        stdout, stderr = child.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        stdout, stderr = child.communicate()
        stderr += "\n(ended by the test after its time limit)"
    return Answer(arguments, child.returncode, stdout, stderr)
