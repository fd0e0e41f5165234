"""Which format a file has: by what it holds, and by its name where that does not say it."""

from __future__ import annotations

import re
from pathlib import Path

from envforge.model.draft import Draft, SourceFormat
from envforge.model.errors import UsageError
from envforge.profiles.importing import (
    conda_lock,
    environment_yml,
    explicit,
    pylock,
    readme,
    requirements,
    script,
)
from envforge.profiles.importing import text as texts
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Text

_KNOWN = (
    "`environment.yml`, `requirements.txt`, `conda-lock.yml`, an explicit list of conda, `pylock.toml`, a pip freeze, "
    "a shell script, or a Markdown page with shell blocks"
)
_COMMAND = re.compile(
    r"(?:\$\s+)?(?:sudo\s+)?(?:pip[\d.]*|conda|mamba|micromamba|uv|python[\d.]*|source|export|git|cd|virtualenv|set|echo|"
    r"apt|apt-get)\s+[\w./~'\"$-]"
)
_REQUIREMENT = re.compile(r"-{1,2}[A-Za-z]|[A-Za-z0-9][\w.-]*\s*(?:$|[\[=<>!~;@(,])|\S+://|git\+|\.{0,2}/")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:===?\S+| @ \S+)")
_FEWEST = 3
_REQUIREMENTS_FILE = re.compile(r"(?i).*(requirements?|constraints?).*\.(txt|in)")


def draft(path: Path, *, name: str | None) -> Draft:
    """What the file at ``path`` says, as a first profile called ``name`` (by the source where None).

    Raises UsageError: ``unreadable-file``, ``unknown-format``, ``nothing-to-import``; InvalidFileError
    ``invalid-import`` with the place of what its own tool would refuse.
    """
    text = texts.read(path)
    sketch = Sketch(path)
    if text.encoding is not None:
        sketch.assume(text.place, f"the file is no UTF-8; it is read as {text.encoding}")
    found = _take(sketch, text)
    if not sketch.steps and not sketch.packages and sketch.python is None:
        told = [note.text for note in sketch.draft(found, name=name).notes if note.line is not None]
        raise UsageError(
            "nothing-to-import",
            f"`{path}` names nothing to install",
            cause="\n".join(told[:20]) or None,
            hint=f"it was read as {found.words}",
        )
    return sketch.draft(found, name=name)


def _take(sketch: Sketch, text: Text) -> SourceFormat:
    suffix = text.path.suffix.lower()
    if not text.content.strip():
        raise _unknown(text.path, "it holds nothing")
    if _REQUIREMENTS_FILE.fullmatch(text.path.name) and not explicit.is_list(text.content):
        return _requirements(sketch, text)
    if suffix == ".toml" or re.search(r"(?m)^lock-version\s*=", text.content):
        document = pylock.parse(text)
        if not pylock.is_lock(document):
            raise _unknown(text.path, "TOML without `lock-version` and `packages`")
        pylock.file(sketch, text, document)
        return SourceFormat.PYLOCK
    if suffix in {".yml", ".yaml"} or re.search(r"(?m)^(dependencies|package):\s*$", text.content):
        return _yaml(sketch, text)
    if suffix in {".md", ".markdown"}:
        readme.file(sketch, text)
        return SourceFormat.README
    if suffix in {".sh", ".bash", ".zsh"} or re.match(r"#!.*\b(ba|z|da|k)?sh\b", text.content):
        script.file(sketch, text)
        return SourceFormat.SCRIPT
    return _lines(sketch, text)


def _yaml(sketch: Sketch, text: Text) -> SourceFormat:
    tree = environment_yml.tree(text)
    if conda_lock.is_lock(tree):
        conda_lock.file(sketch, text, tree)
        return SourceFormat.CONDA_LOCK
    if "dependencies" not in tree.mapping():
        profile = (
            "a profile of envforge already"
            if "schema" in tree.mapping()
            else "YAML with neither `dependencies` nor `package`"
        )
        raise _unknown(text.path, profile)
    environment_yml.file(sketch, text, tree)
    return SourceFormat.ENVIRONMENT_YML


def _lines(sketch: Sketch, text: Text) -> SourceFormat:
    """Text without a telling name: an explicit list, commands, or requirements."""
    if explicit.is_list(text.content):
        explicit.file(sketch, text)
        return SourceFormat.CONDA_EXPLICIT
    found = [line for _, line in requirements.lines(text.place, text.content)]
    if not found:
        raise _unknown(text.path, "it holds nothing")
    if any(_COMMAND.match(line) for line in found):
        script.file(sketch, text)
        return SourceFormat.SCRIPT
    if not any(_REQUIREMENT.match(line) for line in found):
        raise _unknown(text.path, "neither requirements nor commands")
    return _requirements(sketch, text)


def _requirements(sketch: Sketch, text: Text) -> SourceFormat:
    freeze = _is_freeze([line for _, line in requirements.lines(text.place, text.content)])
    requirements.file(sketch, text, freeze=freeze)
    return SourceFormat.FREEZE if freeze else SourceFormat.REQUIREMENTS


def _is_freeze(found: list[str]) -> bool:
    """Whether every line is a pin, in the order in which pip freeze writes them."""
    pins = [pin["name"].lower() for line in found if not line.startswith("-e ") and (pin := _PIN.fullmatch(line))]
    return (
        len(pins) >= _FEWEST and pins == sorted(pins) and len(pins) == sum(not line.startswith("-e ") for line in found)
    )


def _unknown(path: Path, what: str) -> UsageError:
    return UsageError(
        "unknown-format", f"`{path}` is of no format that is imported: {what}", hint=f"known are {_KNOWN}"
    )
