"""The shell blocks of a Markdown page, as a script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envforge.profiles.importing.script import Script
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Text

_FENCE = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*\{?\.?(?P<language>[\w+-]*)")
_SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console", "shell-session", "shellsession", "terminal"})
_PROMPT = re.compile(r"\s*(?:\([\w.-]+\)\s*)?(?:[\w.@~:/-]+)?[$%]\s+")
_COMMAND = re.compile(
    r"(?m)^[ \t]*(?:\$[ \t]+|!|%)?(?:sudo[ \t]+)?(?:pip3?|conda|mamba|micromamba|uv|python3?\s+-m\s+(?:pip|venv))\s"
)


def file(sketch: Sketch, text: Text) -> None:
    """Take over the blocks in their order."""
    script = Script(sketch, text)
    found = [block for block in blocks(text.content) if _is_shell(*block[1:])]
    if found:
        what = "every shell block is taken, in this order; take out what is only an alternative"
        sketch.assume(text.place.at(found[0][0]), what)
    for first, _, content in found:
        script.take(_without_prompts(content), first)


def blocks(content: str) -> Iterator[tuple[int, str, str]]:
    """Line of the first row, language and rows of every fenced block; one that is not closed ends with the page."""
    opened: re.Match[str] | None = None
    rows: list[str] = []
    first = 0
    for number, line in enumerate(content.split("\n"), start=1):
        found = _FENCE.match(line)
        if opened is None:
            if found is not None:
                opened, rows, first = found, [], number + 1
        elif line.strip().startswith(opened["fence"]) and not line.strip().strip(opened["fence"][0]):
            yield first, opened["language"].lower(), "\n".join(rows)
            opened = None
        else:
            rows.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        yield first, opened["language"].lower(), "\n".join(rows)


def _is_shell(language: str, content: str) -> bool:
    return language in _SHELLS or (language in {"", "text"} and _COMMAND.search(content) is not None)


def _without_prompts(content: str) -> str:
    """Where prompts stand, what has none is output, but for the lines that a backslash continues."""
    rows = content.split("\n")
    if not any(_PROMPT.match(row) for row in rows):
        return content
    found = []
    continued = False
    for row in rows:
        prompt = _PROMPT.match(row)
        if prompt is not None:
            found.append(row[prompt.end() :])
        else:
            found.append(re.sub(r"^\s*>\s", "", row) if continued else "")
        continued = found[-1].endswith("\\")
    return "\n".join(found)
