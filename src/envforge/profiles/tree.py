"""YAML as a tree in which every value knows its file, line and column.

Scalars follow the core schema of YAML 1.2 (``yes``, ``on`` and dates are strings), so that a profile means what an
editor shows. Nothing is ever constructed but strings, numbers, booleans, null, lists and mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from envforge.model.errors import Mistake
from envforge.profiles import reading
from envforge.profiles.hints import shown, without_credentials

MAX_BYTES = 1 << 20
MAX_DEPTH = 40
MAX_VALUES = 50_000
_SHOWN = 40

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is too much for one file, and what is said of a merge key."""

    bytes: int
    values: int
    merge: str


OWN = Limits(bytes=MAX_BYTES, values=MAX_VALUES, merge="merge keys (`<<`) are not supported: use `extends`")
FOREIGN = Limits(bytes=8 << 20, values=1_000_000, merge="merge keys (`<<`) are not read: write out what they stand for")
"""For files of other tools: a lock is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One value. ``line`` and ``column`` count from 1; ``keys`` holds the places of a mapping's keys.

    ``note`` is added to every mistake about this value: where a recipe's text got a parameter from.
    ``text`` is a number as it was written, for the hint to quote it.
    """

    path: str
    line: int
    column: int
    value: Scalar | list[Tree] | dict[str, Tree]
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    text: str | None = None
    note: str = ""

    def mistake(self, message: str) -> Mistake:
        return Mistake(
            path=self.path, line=self.line, column=self.column, message=without_credentials(message) + self.note
        )

    def mistake_at_key(self, key: str, message: str) -> Mistake:
        """A mistake about the key ``key`` itself, or about the value if the key's place is not known."""
        line, column = self.keys.get(key, (self.line, self.column))
        return replace(self.mistake(message), line=line, column=column)

    def plain(self) -> Any:
        """The same as lists, mappings and scalars."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        return self.value

    def get(self, key: str) -> Tree | None:
        """The value under ``key``; None if there is none, or this is no mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def items(self, key: str) -> list[Tree]:
        """The list under ``key``; empty if there is none, or something else."""
        found = self.get(key)
        return found.value if found is not None and isinstance(found.value, list) else []

    def entries(self, key: str) -> dict[str, Tree]:
        """The mapping under ``key``; empty if there is none, or something else."""
        found = self.get(key)
        return found.value if found is not None and isinstance(found.value, dict) else {}

    def mapping(self) -> dict[str, Tree]:
        """This mapping's entries; empty if this is something else."""
        return self.value if isinstance(self.value, dict) else {}

    def string(self, key: str) -> str | None:
        """The string under ``key``; None if there is none, or something else."""
        found = self.get(key)
        return found.value if found is not None and isinstance(found.value, str) else None

    def with_value(self, value: Scalar | list[Tree] | dict[str, Tree]) -> Tree:
        return replace(self, value=value)


class YamlError(Exception):
    """The text is no tree: what can be said about it, at least one mistake. ``empty``: it holds nothing at all."""

    def __init__(self, *mistakes: Mistake, empty: bool = False) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes
        self.empty = empty


class _Loader(yaml.SafeLoader):
    """Composes nodes only; its depth is bounded, and implicit types are those of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name and shape that PyYAML looks for
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


_CORE = "tag:yaml.org,2002:"
_NUMBER = list("-+.0123456789")
_FLOAT = r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
IMPLICIT = (
    (_CORE + "null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    (_CORE + "bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    (_CORE + "int", re.compile(r"^[-+]?[0-9]+$"), _NUMBER),
    (_CORE + "float", re.compile(_FLOAT), _NUMBER),
)
"""What an unquoted scalar is taken for: tag, expression, first characters."""
for _entry in IMPLICIT:
    _Loader.add_implicit_resolver(*_entry)
_KNOWN = {_CORE + name for name in ("str", "null", "bool", "int", "float", "seq", "map")}


def read(path: Path) -> Tree:
    """The tree of a file. Raises YamlError, and UsageError where the file cannot be read at all."""
    return parse(reading.read(path, MAX_BYTES + 1), str(path))


def parse(content: bytes, path: str, *, mapping: bool = True, limits: Limits = OWN) -> Tree:
    """The tree of UTF-8 encoded YAML; ``path`` is what mistakes call it. Raises YamlError.

    ``mapping``: anything but a mapping is a mistake.
    """

    def fatal(message: str, line: int = 1, column: int = 1) -> YamlError:
        return YamlError(Mistake(path=path, line=line, column=column, message=message))

    if len(content) > limits.bytes:
        raise fatal(f"larger than {limits.bytes >> 20} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        raise fatal(f"not UTF-8: byte 0x{content[error.start]:02x}", *_place(before)) from error
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        place = _place(text[: error.position])
        raise fatal(f"the character U+{int(error.character):04X} is not allowed in YAML", *place) from error
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"YAML: {' '.join(filter(None, (error.context, error.problem)))}"
        raise fatal(message, *((mark.line + 1, mark.column + 1) if mark else (1, 1))) from error
    finally:
        loader.dispose()
    if node is None:
        raise YamlError(*fatal("the file is empty").mistakes, empty=True)
    builder = _Builder(path, limits)
    tree = builder.build(node)
    if builder.mistakes:
        raise YamlError(*builder.mistakes)
    if mapping and not isinstance(tree.value, dict):
        raise YamlError(tree.mistake(f"expected a mapping, found {shown(tree.plain())}"))
    return tree


def _place(before: str) -> tuple[int, int]:
    """Line and column after ``before``."""
    lines = before.split("\n")
    return len(lines), len(lines[-1]) + 1


class _Builder:
    """Nodes to trees; an alias is built again at every use, so their number is bounded."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.mistakes: list[Mistake] = []
        self.count = 0

    def build(self, node: yaml.Node, depth: int = 0) -> Tree:
        self.count += 1
        place = self._empty(node)
        if self.count > self.limits.values or depth > MAX_DEPTH:
            raise YamlError(*self.mistakes, place.mistake("aliases expand to more than a profile can hold"))
        if node.tag not in _KNOWN:
            tag = node.tag.replace(_CORE, "!!")
            self.mistakes.append(place.mistake(f"the tag `{tag}` is not supported: this file is plain data"))
        elif isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, depth)
        elif isinstance(node, yaml.SequenceNode):
            return place.with_value([self.build(item, depth + 1) for item in node.value])
        elif isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        return place

    def _empty(self, node: yaml.Node) -> Tree:
        return Tree(path=self.path, line=node.start_mark.line + 1, column=node.start_mark.column + 1, value=None)

    def _scalar(self, node: yaml.ScalarNode, place: Tree) -> Tree:
        text = str(node.value)
        try:
            value = _scalar(node.tag.removeprefix(_CORE), text)
        except ValueError:
            self.mistakes.append(place.mistake(f"`{text[:_SHOWN]}` is no {node.tag.removeprefix(_CORE)}"))
            return place
        return replace(place, value=value, text=None if isinstance(value, str) else text)

    def _mapping(self, node: yaml.MappingNode, place: Tree, depth: int) -> Tree:
        value: dict[str, Tree] = {}
        for key, entry in self._pairs(node):
            name = str(key.value)
            if name in value:
                first = place.keys[name]
                message = f"duplicate key `{name}`, first given in line {first[0]}"
                self.mistakes.append(self._empty(key).mistake(message))
            else:
                place.keys[name] = (key.start_mark.line + 1, key.start_mark.column + 1)
                value[name] = place  # Its name is taken before its value, whose own mistakes come after it.
            value[name] = self.build(entry, depth + 1)
        return place.with_value(value)

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != _CORE + "str":
                quoting = f': quote it, `"{key.value}"`' if isinstance(key, yaml.ScalarNode) else ""
                self.mistakes.append(self._empty(key).mistake(f"a key must be a string{quoting}"))
            elif key.value == "<<" and key.style is None:
                self.mistakes.append(self._empty(key).mistake(self.limits.merge))
            else:
                yield key, entry


def _scalar(kind: str, text: str) -> Scalar:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return int(text)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan")) if kind == "float" else text
