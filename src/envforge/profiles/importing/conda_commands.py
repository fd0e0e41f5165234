"""The command lines of conda, mamba and micromamba."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from envforge.model.profile import Action, Backend
from envforge.profiles.importing import specs
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place

PROGRAMS = frozenset({"conda", "mamba", "micromamba"})
_WITH_VALUE = frozenset({
    "-n", "--name", "-p", "--prefix", "-c", "--channel", "--file", "-f", "--solver", "--clone", "--repodata-fn",
    "--platform", "--subdir", "--experimental", "--channel-priority", "-r", "--root-prefix", "--append", "--add",
    "--prepend", "--set", "--remove",
})  # fmt: skip
_SILENT = frozenset({
    "activate", "deactivate", "init", "info", "list", "clean", "run", "search", "shell", "--version", "-V", "help",
    "doctor", "notices", "shell.bash", "config", "--help", "-h",
})  # fmt: skip


def without_run(words: list[str]) -> list[str]:
    """The command that `conda run -n NAME` starts; any other as it is."""
    if len(words) < 2 or Path(words[0]).name not in PROGRAMS or words[1] != "run":
        return words
    rest = words[2:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in {"-n", "--name", "-p", "--prefix", "--cwd"} else rest[1:]
    return rest


def variables(words: Sequence[str]) -> list[str]:
    """`NAME=VALUE` of `conda env config vars set`."""
    return list(words[4:]) if list(words[:4]) == ["env", "config", "vars", "set"] else []


def take(sketch: Sketch, place: Place, words: Sequence[str]) -> str | None:
    """Take over what stands behind `conda`; returns the `environment.yml` that it names, if it does."""
    verb = next((word for word in words if not word.startswith("-")), words[0] if words else "")
    if verb == "env":
        return _env(sketch, place, words)
    if verb in {"create", "install", "update", "upgrade"}:
        _install(sketch, place, verb, [word for word in words if word != verb])
    elif verb == "config":
        _config(sketch, place, words)
    elif verb and verb not in _SILENT:
        sketch.lose(place, f"`conda {verb}`: a profile has nothing like it")
    return None


def _env(sketch: Sketch, place: Place, words: Sequence[str]) -> str | None:
    rest = [word for word in words if word != "env"]
    verb = rest[0] if rest else ""
    if verb not in {"create", "update"}:
        if verb not in {"list", "config"}:
            sketch.lose(place, f"`conda env {verb}`: a profile has nothing like it")
        return None
    sketch.backend = Backend.CONDA
    files = ["environment.yml"]
    for name, value in _options(rest[1:]):
        if name in {"-f", "--file"}:
            files[0] = value
        elif name in {"-n", "--name"} and "$" not in value:
            sketch.name = sketch.name or value
        elif not name and value.endswith((".yml", ".yaml")):
            files[0] = value
    return files[0]


def _config(sketch: Sketch, place: Place, words: Sequence[str]) -> None:
    for position, word in enumerate(words[:-2]):
        if word in {"--add", "--append", "--prepend"} and words[position + 1] == "channels":
            sketch.channel(place, words[position + 2])


def _install(sketch: Sketch, place: Place, verb: str, words: Sequence[str]) -> None:
    """`create` gives the packages of the profile, what is installed later is a step."""
    since = sketch.noted
    created = sketch.backend is Backend.CONDA
    sketch.backend = Backend.CONDA
    if verb == "create" and created:
        sketch.assume(place, "a second environment: all goes into one", "conda")
    found: list[str] = []
    for name, value in _options(words):
        if not name:
            spec = specs.take(sketch, place, value)
            found += [spec] if spec is not None else []
        elif name in {"-c", "--channel"}:
            sketch.channel(place, value)
        elif name in {"-n", "--name", "-p", "--prefix"}:
            if verb == "create" and sketch.name is None and "$" not in value:
                sketch.name = Path(value).name or None
        elif name in {"--file", "-f", "--clone"}:
            sketch.lose(place, f"`{name}` of `conda {verb}`: name what it holds", "conda")
        elif name in {"--no-deps", "--only-deps", "--platform", "--subdir"}:
            sketch.lose(place, f"`{name}` of `conda {verb}`: a profile has nothing like it", "conda")
    if verb == "create":
        sketch.packages += found
    elif found:
        sketch.other_step(Action.CONDA, tuple(found), f"conda-{_stem(found[0])}", since)


def _stem(spec: str) -> str:
    """A name for the step that begins with this package."""
    name = re.split(r"[^\w.-]", spec.rpartition("::")[2], maxsplit=1)[0]
    return re.sub(r"[^A-Za-z0-9._-]", "-", name) or "packages"


def _options(words: Sequence[str]) -> list[tuple[str, str]]:
    """Options with their values in order; an empty name for what is no option."""
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("-"):
            found.append(("", word))
        elif name in _WITH_VALUE and not equals:
            found.append((name, words[position] if position < len(words) else ""))
            position += 1
        elif not word.startswith("--") and word[:2] in _WITH_VALUE and len(word) > 2:
            found.append((word[:2], word[2:]))
        else:
            found.append((name, value))
    return found
