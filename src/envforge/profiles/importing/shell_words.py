"""A shell script as simple commands with their lines; nothing is run, and what only a shell could know is marked.

`shlex` does not do: it neither tells the line of a word nor which quotes a variable stood in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_BLANK = " \t"
_META = frozenset("\n;&|()<> \t")
_REDIRECT = re.compile(r"\d*(<<<|<<-?|>>|>&|<&|<>|>\||[<>])|&>>?")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;|&()]")
_PLAIN = re.compile(r"[^\s;&|()<>'\"\\$`]+")
_PLAIN_QUOTED = re.compile(r'[^"\\$`]+')
_VARIABLE = re.compile(r"\$(?:(\w+|[@*#?$!-])|\{(\w+)(?::?([-=])([^{}$`]*))?\})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a word: ``text`` as it is, or the name of a ``variable`` with what it is where that is not set."""

    text: str
    variable: bool = False
    otherwise: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``line`` from 1; ``after``: the operator before it (``&&``, ``||``, ``|``), empty for a new line or ``;``.

    ``bare``: it holds an unquoted ``<`` or ``>`` that surely belongs to a version, as in ``torch>=2``.
    ``document``: a here-document belongs to it.
    """

    line: int
    words: tuple[tuple[Part, ...], ...]
    after: str = ""
    bare: bool = False
    document: bool = False


def resolved(word: tuple[Part, ...], variables: Mapping[str, str]) -> str:
    """The word's text; a variable that is not known stays as ``${NAME}``."""
    found = []
    for part in word:
        known = part.otherwise if part.otherwise is not None else f"${{{part.text}}}"
        found.append(variables.get(part.text, known) if part.variable else part.text)
    return "".join(found)


def commands(text: str, first: int = 1) -> Iterator[Command]:
    """The simple commands of a script in order; ``first``: the line where ``text`` begins."""
    return _Scanner(text, first).commands()


@dataclass(slots=True)
class _Scanner:
    text: str
    line: int
    position: int = 0
    words: list[tuple[Part, ...]] = field(default_factory=list)
    start: int = 0
    after: str = ""
    bare: bool = False
    document: bool = False
    ends: list[str] = field(default_factory=list)

    def commands(self) -> Iterator[Command]:
        while self.position < len(self.text):
            character = self.text[self.position]
            operator = _OPERATOR.match(self.text, self.position)
            redirect = _REDIRECT.match(self.text, self.position)
            if character in _BLANK or self.text.startswith("\\\n", self.position):
                self._skip(2 if character == "\\" else 1)
            elif character == "\n":
                yield from self._end("")
                self._skip(1)
                self._pass_documents()
            elif character == "#":
                self._skip(self._to_line_end())
            elif redirect is not None:
                self._redirect(redirect)
            elif operator is not None:
                yield from self._end(operator[0])
                self._skip(len(operator[0]))
            else:
                self.start = self.start if self.words else self.line
                self.words.append(self._word())
        yield from self._end("")

    def _skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.position, self.position + count)
        self.position += count

    def _to_line_end(self) -> int:
        end = self.text.find("\n", self.position)
        return (end if end >= 0 else len(self.text)) - self.position

    def _end(self, operator: str) -> Iterator[Command]:
        if self.words or self.document:
            yield Command(
                line=self.start or self.line, words=tuple(self.words), after=self.after, bare=self.bare,
                document=self.document,
            )  # fmt: skip
            self.after = ""
        if operator or self.words:
            self.after = operator if operator in {"&&", "||", "|", "|&"} else ""
        self.words, self.bare, self.document, self.start = [], False, False, 0

    def _redirect(self, found: re.Match[str]) -> None:
        """What a command reads or writes does not matter here; a here-document's lines must be passed over."""
        self._skip(len(found[0]))
        while self.position < len(self.text) and self.text[self.position] in _BLANK:
            self._skip(1)
        if self.position < len(self.text) and self.text[self.position] not in _META:
            target = resolved(self._word(), {})
            if found[1] in {"<<", "<<-"}:
                self.document = True
                self.ends.append(target)

    def _pass_documents(self) -> None:
        for end in self.ends:
            while self.position < len(self.text):
                length = self._to_line_end()
                row = self.text[self.position : self.position + length]
                self._skip(min(length + 1, len(self.text) - self.position))
                if row.strip() == end:
                    break
        self.ends = []

    def _word(self) -> tuple[Part, ...]:
        parts: list[Part] = []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character in "<>" and self._is_version(parts):
                self.bare = True
            elif character in _META:
                break
            self._piece(parts, character)
        return tuple(parts)

    def _is_version(self, parts: list[Part]) -> bool:
        """Whether an unquoted ``<`` or ``>`` within a word begins a version, as no file's name would follow it."""
        whole = "".join(part.text for part in parts)
        following = self.text[self.position + 1 : self.position + 2]
        return bool(whole) and not whole.isdigit() and (following == "=" or following.isdigit())

    def _piece(self, parts: list[Part], character: str) -> None:
        if character == "\\":
            if not self.text.startswith("\\\n", self.position):
                parts.append(Part(text=self.text[self.position + 1 : self.position + 2]))
            self._skip(2)
        elif character == "'":
            end = self.text.find("'", self.position + 1)
            end = end if end >= 0 else len(self.text)
            parts.append(Part(text=self.text[self.position + 1 : end]))
            self._skip(end + 1 - self.position)
        elif character == '"':
            self._quoted(parts)
        elif character in "$`":
            self._expansion(parts)
        else:
            self._plain(parts, _PLAIN)

    def _plain(self, parts: list[Part], what: re.Pattern[str]) -> None:
        """As many characters as stand for themselves; one at least."""
        found = what.match(self.text, self.position)
        text = found[0] if found is not None else self.text[self.position]
        parts.append(Part(text=text))
        self._skip(len(text))

    def _quoted(self, parts: list[Part]) -> None:
        self._skip(1)
        parts.append(Part(text=""))
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '"':
                self._skip(1)
                return
            if character == "\\":
                following = self.text[self.position + 1 : self.position + 2]
                if following != "\n":
                    parts.append(Part(text=following if following in '$`"\\' else f"\\{following}"))
                self._skip(2)
            elif character in "$`":
                self._expansion(parts)
            else:
                self._plain(parts, _PLAIN_QUOTED)

    def _expansion(self, parts: list[Part]) -> None:
        """A variable; or what only a shell could work out, which stands as a variable that nobody sets."""
        if self.text.startswith("$(", self.position):
            self._skip(self._nested(self.position + 2, "(", ")"))
            parts.append(Part(text="(...)", variable=True))
        elif self.text[self.position] == "`":
            end = self.text.find("`", self.position + 1)
            self._skip((end + 1 if end >= 0 else len(self.text)) - self.position)
            parts.append(Part(text="(...)", variable=True))
        elif (found := _VARIABLE.match(self.text, self.position)) is not None:
            parts.append(Part(text=found[1] or found[2], variable=True, otherwise=found[4]))
            self._skip(len(found[0]))
        elif self.text.startswith("${", self.position):
            self._skip(self._nested(self.position + 2, "{", "}"))
            parts.append(Part(text="...", variable=True))
        else:
            parts.append(Part(text="$"))
            self._skip(1)

    def _nested(self, start: int, opening: str, closing: str) -> int:
        """How far it is from here to the bracket that closes the one before ``start``."""
        depth, position = 1, start
        while position < len(self.text) and depth:
            depth += (self.text[position] == opening) - (self.text[position] == closing)
            position += 1
        return position - self.position
