"""The order of the words on a command line: global options count wherever they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envforge.model.errors import UsageError

GLOBAL_FLAGS = frozenset({"--offline", "--quiet", "-q", "--verbose", "-v", "--version"})
GLOBAL_VALUES = frozenset({"--home", "--config"})
HELP = frozenset({"--help", "-h"})
_JSON = "--json"
_RUN = "run"
_RUN_VALUES = frozenset({"--gpu", "--wait-gpu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """``arguments`` in the order that the parser wants; ``verb`` None where no word can be one."""

    arguments: tuple[str, ...]
    verb: str | None
    json: bool
    asks_for_help: bool


def arrange(argv: Sequence[str]) -> Words:
    """Global options to the front, ``--json`` behind the verb; nothing of a command after ``run ENV`` is touched.

    Raises UsageError where a global option that needs a value has none.
    """
    front: list[str] = []
    rest: list[str] = []
    verb: str | None = None
    json = asks_for_help = environment_named = False
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        name, equals, _ = word.partition("=")
        if word == "--" or (environment_named and not word.startswith("-")):
            # What follows is the user's own command (or words that only look like options).
            rest += ["--", *argv[position if word == "--" else position - 1 :]]
            break
        if word in GLOBAL_FLAGS:
            front.append(word)
        elif name in GLOBAL_VALUES:
            front.append(word)
            if not equals:
                if position == len(argv):
                    raise UsageError("usage", f"`{word}` needs a value", hint=f"as in `envforge {word} PATH list`")
                front.append(argv[position])
                position += 1
        elif word == _JSON:
            json = True
        elif word in HELP:
            asks_for_help = True
            rest.append(word)
        elif verb is None and not word.startswith("-"):
            verb = word
        elif verb == _RUN and word in _RUN_VALUES:
            # The word behind it is its value, not the environment or the command.
            rest += [word, *argv[position : position + 1]]
            position += 1
        else:
            rest.append(word)
            environment_named = environment_named or (verb == _RUN and not word.startswith("-"))
    head = [verb, *([_JSON] if json else [])] if verb is not None else []
    arguments = [*front, *head, *rest]
    return Words(arguments=tuple(arguments), verb=verb, json=json, asks_for_help=asks_for_help)
