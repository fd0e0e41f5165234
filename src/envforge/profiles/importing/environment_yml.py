"""An `environment.yml` of conda."""

from __future__ import annotations

import re
from collections.abc import Callable

from envforge.model.profile import Backend
from envforge.profiles import mistakes
from envforge.profiles.importing import addresses, requirements, specs
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.requirements import Reading
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text, broken
from envforge.profiles.tree import FOREIGN, Tree, YamlError, parse

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def tree(text: Text) -> Tree:
    """The file as a tree. Raises InvalidFileError ``invalid-import`` with every place where it is none."""
    content = text.content.encode("utf-8", errors="surrogatepass")
    try:
        return parse(content, str(text.path), limits=FOREIGN)
    except YamlError as error:
        raise mistakes.invalid("invalid-import", f"`{text.path}`", error.mistakes) from error


def file(sketch: Sketch, text: Text, whole: Tree, *, lenient: bool = False) -> None:
    """Take over what the file says. Raises InvalidFileError ``invalid-import`` where conda would refuse it."""
    sketch.backend = Backend.CONDA
    since = sketch.noted
    ask = Ask(place=text.place, whole=True)
    reading = Reading(sketch=sketch, folder=text.path.parent, lenient=lenient, chain=(text.path.resolve(),))
    for key, value in whole.mapping().items():
        place = _place(text, value)
        known = _KEYS.get(key)
        if known is not None:
            known(reading, ask, text, value)
        elif key in {"platforms", "category"}:
            sketch.lose(place, f"`{key}`: a profile is for Linux, and whole", "conda")
        else:
            sketch.lose(place, f"`{key}`: a profile has nothing like it", "conda")
    sketch.install(ask, since)


def _place(text: Text, value: Tree) -> Place:
    return text.place.at(value.line)


def said(value: Tree) -> str | None:
    """A scalar as it was written; None for a list, a mapping or nothing."""
    return value.text if value.text is not None else value.value if isinstance(value.value, str) else None


def _entries(text: Text, value: Tree, what: str) -> list[Tree]:
    """The items of a list; a single text counts as one, nothing as none."""
    if value.value is None:
        return []
    if isinstance(value.value, list):
        return value.value
    if isinstance(value.value, str):
        return [value]
    raise broken(_place(text, value), f"`{what}` is no list", column=value.column)


def _name(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    del ask, text
    reading.sketch.name = reading.sketch.name or said(value)


def _channels(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    del ask
    for entry in _entries(text, value, "channels"):
        reading.sketch.channel(_place(text, entry), said(entry) or "")


def _dependencies(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    for entry in _entries(text, value, "dependencies"):
        place = _place(text, entry)
        if isinstance(entry.value, dict):
            for key, inner in entry.value.items():
                if key == "pip":
                    _pip(reading, ask, text, inner)
                else:
                    reading.sketch.lose(place, f"the dependencies under `{key}`: only those under `pip` are known")
            continue
        spec = said(entry)
        if spec is None:
            raise broken(place, "a dependency is a match spec, or a mapping with `pip`", column=entry.column)
        found = specs.take(reading.sketch, place, spec)
        if found is not None:
            reading.sketch.packages.append(found)


def _pip(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    found = []
    for entry in _entries(text, value, "pip"):
        line = said(entry)
        if line is None:
            raise broken(_place(text, entry), "a dependency under `pip` is a text", column=entry.column)
        # conda writes the entries into a requirements file, so one may hold several lines.
        found += [(_place(text, entry), inner) for _, inner in requirements.lines(text.place, line)]
    requirements.requirement_lines(reading, ask, found)


def _repositories(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    """conda-lock's `pip-repositories`: indexes besides the default one."""
    for entry in _entries(text, value, "pip-repositories"):
        reading.sketch.indexes.index(_place(text, entry), ask, said(entry) or "", instead=False)


def _variables(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    del ask
    for name, entry in value.mapping().items():
        content = said(entry) if entry.value is not None else ""
        variable(reading.sketch, _place(text, entry), name, content, reading.sketch.environment)


def _prefix(reading: Reading, ask: Ask, text: Text, value: Tree) -> None:
    del ask
    reading.sketch.lose(_place(text, value), "`prefix`: envforge says where an environment lies", "conda")


def variable(sketch: Sketch, place: Place, name: str, value: str | None, target: dict[str, str]) -> None:
    """A variable, for the environment or one step; one that holds a secret, or cannot be one, is told."""
    if value is None or not _VARIABLE.fullmatch(name) or "\0" in value:
        sketch.lose(place, f"the variable `{name}`", "environment")
    elif addresses.is_secret(name) or addresses.bare(value)[1]:
        sketch.lose(place, f"the variable `{name}`: it looks like a credential, which no profile holds", "environment")
    else:
        target[name] = value


_KEYS: dict[str, Callable[[Reading, Ask, Text, Tree], None]] = {
    "name": _name,
    "channels": _channels,
    "dependencies": _dependencies,
    "pip-repositories": _repositories,
    "variables": _variables,
    "prefix": _prefix,
}
