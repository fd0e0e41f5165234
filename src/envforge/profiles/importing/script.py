"""Shell scripts: what they install in which order, and with which variables. Everything else they do is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from packaging.utils import canonicalize_name

from envforge.model.errors import UsageError
from envforge.model.profile import Action
from envforge.profiles.importing import conda_commands, environment_yml
from envforge.profiles.importing import text as texts
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.pip_options import options
from envforge.profiles.importing.pythons import python
from envforge.profiles.importing.requirements import Reading, install_words
from envforge.profiles.importing.shell_words import Command, commands, resolved
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPENING = frozenset({"then", "do", "else", "{", "!", "time", "exec", "command", "nohup", "env", "sudo"})
_CONDITIONS = frozenset({"if", "elif", "while", "until", "for", "case", "select", "[[", "[", "test"})
_SILENT = frozenset({
    "fi", "done", "esac", "}", "]]", "]", "echo", "printf", "set", "shopt", "exit", "return", "true", "false", ":",
    "source", ".", "deactivate", "activate", "ls", "pwd", "clear", "which", "type", "read", "sleep", "nvidia-smi",
    "yes", "eval", "local", "declare", "unset", "shift", "trap", "wait", "break", "continue", "function",
})  # fmt: skip
"""Words that change nothing of an environment."""
_VERBS = frozenset({
    "add", "build", "checkout", "clone", "develop", "install", "pull", "run", "submodule", "sync", "update", "upgrade",
})  # fmt: skip
"""Words behind a command that may be repeated: others could be a secret."""
_HARMLESS = frozenset({"list", "show", "check", "freeze", "cache", "debug", "index", "inspect", "help", "hash"})
_NAMED_PYTHON = re.compile(r"(?:python|pip)(\d(?:\.\d+)?)?(?:\.\d+)?")
_SHELL = frozenset({"PATH", "HOME", "USER", "SHELL", "PWD", "PS1", "TERM", "LANG", "TMPDIR", "CONDA_PREFIX"})
_UNKNOWN = re.compile(r"\$\{[^}]*\}")


class Script:
    """The commands of one script, in order, into a sketch."""

    def __init__(self, sketch: Sketch, text: Text) -> None:
        self.sketch = sketch
        self.text = text
        self.variables: dict[str, str] = {}
        self.reading = Reading(sketch=sketch, folder=text.path.parent, lenient=True, chain=(text.path.resolve(),))

    def take(self, content: str, first: int = 1) -> None:
        """Take over the commands of ``content``, which begins in line ``first`` of the file."""
        for command in commands(content, first):
            place = self.text.place.at(command.line)
            if command.document:
                self.sketch.lose(place, "a here-document: what it writes is not followed")
            self._command(place, command)

    def _command(self, place: Place, command: Command) -> None:
        words = [resolved(word, self.variables) for word in command.words]
        words, given = self._plain(place, words)
        if not words:
            self.variables.update(given)
            return
        name = Path(words[0]).name
        if command.after == "||":
            if name not in _SILENT:
                self.sketch.lose(place, f"`{_shown(words)}`: it runs only where what stands before it fails")
        elif name == "export":
            self._export(place, words[1:])
        elif not self._installs(place, command, words, given) and name not in _SILENT:
            self.sketch.lose(place, _why(name, words))

    def _plain(self, place: Place, words: list[str]) -> tuple[list[str], dict[str, str]]:
        """The command without what stands before it, and the variables that are set for it."""
        given: dict[str, str] = {}
        while words:
            word = words[0].lstrip("!%") or words[0]
            assigned = _ASSIGNMENT.fullmatch(word)
            if word in _CONDITIONS:
                self.sketch.assume(place, f"what stands under `{word}` is taken as if it were done, in every branch")
                return [], {}
            if assigned is not None:
                given[assigned[1]] = assigned[2]
                words = words[1:]
            elif Path(word).name in _OPENING:
                words = _without_options(words[1:])
            else:
                return [word, *words[1:]], given
        return [], given

    def _export(self, place: Place, words: Sequence[str]) -> None:
        for word in words:
            found = _ASSIGNMENT.fullmatch(word)
            if word.startswith("-"):
                continue
            name, value = (found[1], found[2]) if found else (word, self.variables.get(word, ""))
            if found is None and word not in self.variables:
                continue
            self.variables[name] = value
            self._variable(place, name, value, self.sketch.environment)

    def _variable(self, place: Place, name: str, value: str, target: dict[str, str]) -> None:
        if name in _SHELL or _UNKNOWN.search(value):
            what = "it belongs to the shell" if name in _SHELL else "its value is known only where the script runs"
            self.sketch.lose(place, f"the variable `{name}`: {what}", "environment")
            return
        environment_yml.variable(self.sketch, place, name, value, target)

    def _installs(self, place: Place, command: Command, words: list[str], given: dict[str, str]) -> bool:
        """Whether it is a command that makes an environment or installs into one: then it is taken over."""
        words = conda_commands.without_run(words)
        rest = _pip(words)
        if rest is not None:
            self._pip(place, command, rest, given)
        elif _is_venv(words):
            self._venv(place, words)
        elif words and Path(words[0]).name in conda_commands.PROGRAMS:
            self._conda(place, words[1:], bare=command.bare)
        else:
            return False
        return True

    # -- pip -----------------------------------------------------------------------------------------------------------

    def _pip(self, place: Place, command: Command, words: list[str], given: dict[str, str]) -> None:
        verb = next((word for word in words if not word.startswith("-")), "")
        rest = words[words.index(verb) + 1 :] if verb else []
        if verb == "install":
            self._install(place, command, rest, given)
        elif verb in {"uninstall", "remove"}:
            self._uninstall(place, rest)
        elif verb and verb not in _HARMLESS:
            self.sketch.lose(place, f"`pip {verb}`: a profile has nothing like it")

    def _install(self, place: Place, command: Command, words: list[str], given: dict[str, str]) -> None:
        since = self.sketch.noted
        ask = Ask(place=place)
        for name, value in given.items():
            self._variable(place, name, value, ask.environment)
        if command.bare:
            self.sketch.assume(
                place, "a version behind an unquoted `<` or `>` is meant; a shell would take it for a file"
            )
        install_words(self.reading, ask, place, words)
        # The same file may be installed again by another command.
        self.reading.seen.clear()
        self.sketch.install(ask, since)

    def _uninstall(self, place: Place, words: list[str]) -> None:
        since = self.sketch.noted
        names = []
        for option in options(words):
            if not option.name and re.fullmatch(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", option.value):
                names.append(canonicalize_name(option.value))
            else:
                self.sketch.lose(place, f"`{option.name or option.value}` of `pip uninstall`")
        if names:
            self.sketch.other_step(Action.UNINSTALL, tuple(dict.fromkeys(names)), f"without-{names[0]}", since)

    # -- environments --------------------------------------------------------------------------------------------------

    def _venv(self, place: Place, words: list[str]) -> None:
        """`python -m venv DIR`, `virtualenv -p PYTHON DIR`, `uv venv --python 3.10 DIR`."""
        program = Path(words[0]).name
        rest = words[3:] if program.startswith("python") else words[2:] if program == "uv" else words[1:]
        version = program.removeprefix("python")
        for flag, value in pairwise([*rest, ""]):
            name, _, joined = flag.partition("=")
            if name in {"-p", "--python"}:
                version = Path(joined or value).name.removeprefix("python")
        if "." in version:
            self.sketch.wants_python(place, python(version), version)
        folder = next((option.value for option in options(rest) if not option.name), "")
        if self.sketch.name is None and "$" not in folder:
            self.sketch.name = Path(folder).name.lstrip(".") or None

    def _conda(self, place: Place, words: list[str], *, bare: bool) -> None:
        if bare:
            self.sketch.assume(
                place, "a version behind an unquoted `<` or `>` is meant; a shell would take it for a file"
            )
        file = conda_commands.take(self.sketch, place, words)
        if file is not None:
            self._environment(place, file)
        for word in conda_commands.variables(words):
            found = _ASSIGNMENT.fullmatch(word)
            if found is not None:
                self._variable(place, found[1], found[2], self.sketch.environment)

    def _environment(self, place: Place, name: str) -> None:
        """`conda env create -f FILE`: the file is read where it lies beside the script."""
        try:
            text = texts.read(self.text.path.parent / name)
            environment_yml.file(self.sketch, text, environment_yml.tree(text), lenient=True)
        except UsageError as error:
            self.sketch.lose(place, f"`{name}`: {error.message} ({error.cause})")


def _without_options(words: list[str]) -> list[str]:
    """What follows `sudo -H` or `env -i`, without those options."""
    while words and words[0].startswith("-"):
        words = words[1:]
    return words


def _pip(words: Sequence[str]) -> list[str] | None:
    """The words behind pip, however it is called; None for another command."""
    name = Path(words[0]).name if words else ""
    if re.fullmatch(r"pip[\d.]*", name):
        return list(words[1:])
    if name == "uv" and list(words[1:2]) == ["pip"]:
        return list(words[2:])
    if (_NAMED_PYTHON.fullmatch(name) or "$" in name) and list(words[1:3]) == ["-m", "pip"]:
        return list(words[3:])
    return None


def _is_venv(words: Sequence[str]) -> bool:
    name = Path(words[0]).name if words else ""
    if name == "virtualenv" or (name == "uv" and list(words[1:2]) == ["venv"]):
        return True
    return _NAMED_PYTHON.fullmatch(name) is not None and list(words[1:3]) in (["-m", "venv"], ["-m", "virtualenv"])


def _shown(words: Sequence[str]) -> str:
    """The command as it may be told: its arguments could hold a secret."""
    second = words[1] if len(words) > 1 and (words[1] in _VERBS or words[1].endswith((".py", ".sh"))) else None
    return Path(words[0]).name[:40] + (f" {second}" if second else "")


def _why(name: str, words: Sequence[str]) -> str:
    if name in {"cd", "pushd", "popd"}:
        return f"`{name}`: files that are named later are looked for beside the script"
    return f"`{_shown(words)}`: a step of kind `run` can do such things, where they belong to the environment"


def file(sketch: Sketch, text: Text) -> None:
    """Take over a script."""
    Script(sketch, text).take(text.content)
