"""A venv's own activation scripts: they also set the profile's variables, and `deactivate` puts back what was there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

_TITLE = "\n# the variables of the profile, as `envforge run` sets them\n"
_OLD = "_ENVFORGE_OLD_"
# What the scripts set themselves; of PATH they also keep what was there.
_THEIRS = frozenset({"PATH", "VIRTUAL_ENV"})


def equip(prefix: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Let the activation scripts of the venv ``prefix`` set ``variables``, too.

    Returns the paths of those that stay as they are, since they are not as uv writes them. Raises OSError.
    """
    given = {**variables, **({"PATH": f"{prefix}/bin:{variables['PATH']}"} if "PATH" in variables else {})}
    left = []
    for path, equipped in _SCRIPTS.items():
        text = (prefix / path).read_text(encoding="utf-8")
        new = equipped(text, given)
        if new is None:
            left.append(path)
        else:
            (prefix / path).write_text(new, encoding="utf-8")
    return tuple(left)


def posix(text: str, variables: Mapping[str, str]) -> str | None:
    """``activate`` for sh, bash, zsh, ksh; None where it is not as uv writes it."""
    call = "    if command -v _envforge_leave >/dev/null 2>&1; then _envforge_leave; fi\n"
    hooked = _hooked(text, r"deactivate \(\) \{\n", call)
    if hooked is None:
        return None
    back, enter = [], []
    for name, value in variables.items():
        old = _OLD + name
        if name not in _THEIRS:
            put = f'{name}="${old}"; export {name}; unset {old}'
            back.append(f'    if [ -n "${{{old}+x}}" ]; then {put}; else unset {name}; fi\n')
            enter.append(f'if [ -n "${{{name}+x}}" ]; then {old}="${name}"; fi\n')
        if name != "VIRTUAL_ENV":
            enter.append(f"{name}={shlex.quote(value)}; export {name}\n")
    leave = f"_envforge_leave () {{\n{''.join(back)}    unset -f _envforge_leave\n}}\n"
    return f"{hooked}{_TITLE}{leave}{''.join(enter)}"


def fish(text: str, variables: Mapping[str, str]) -> str | None:
    """``activate.fish``; None where it is not as uv writes it."""
    hooked = _hooked(text, r"function deactivate [^\n]*\n", "    functions -q _envforge_leave; and _envforge_leave\n")
    if hooked is None:
        return None
    back, enter = [], []
    for name, value in variables.items():
        old = _OLD + name
        if name not in _THEIRS:
            put = f"        set -gx {name} ${old}\n        set -e {old}\n"
            back.append(f"    if set -q {old}\n{put}    else\n        set -e {name}\n    end\n")
            enter.append(f"set -q {name}; and set -g {old} ${name}\n")
        if name != "VIRTUAL_ENV":
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            # fish keeps PATH as a list, and what else ends in it splits by itself.
            words = " ".join(f"'{part}'" for part in quoted.split(":")) if name == "PATH" else f"'{quoted}'"
            enter.append(f"set -gx {name} {words}\n")
    leave = f"function _envforge_leave\n{''.join(back)}    functions -e _envforge_leave\nend\n"
    return f"{hooked}{_TITLE}{leave}{''.join(enter)}"


def csh(text: str, variables: Mapping[str, str]) -> str | None:
    """``activate.csh``, also for tcsh; None where it is not as uv writes it."""
    hooked = _hooked(text, r"alias deactivate '", "test $?_ENVFORGE_ON != 0 && _envforge_leave; ")
    if hooked is None:
        return None
    back, enter = [], []
    for name, value in variables.items():
        old = _OLD + name
        if name not in _THEIRS:
            # A command after `&&` is only expanded when it is its turn, unlike one after `if`.
            back.append(f'test $?{old} != 0 && setenv {name} "${old}:q" || unsetenv {name}; unset {old}; ')
            enter.append(f'if ( $?{name} ) then\n    set {old}="${name}:q"\nendif\n')
        if name != "VIRTUAL_ENV":
            quoted = value.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n")
            enter.append(f"setenv {name} '{quoted}'\n")
    leave = f"alias _envforge_leave '{''.join(back)}unset _ENVFORGE_ON; unalias _envforge_leave'\nset _ENVFORGE_ON\n"
    return f"{hooked}{_TITLE}{''.join(enter)}{leave}"


def _hooked(text: str, line: str, call: str) -> str | None:
    """``text`` with ``call`` behind the one place that begins a line and matches ``line``."""
    found = re.findall(f"^{line}", text, re.MULTILINE)
    return text.replace(found[0], found[0] + call, 1) if len(found) == 1 else None


_SCRIPTS: Mapping[str, Callable[[str, Mapping[str, str]], str | None]] = {
    "bin/activate": posix,
    "bin/activate.fish": fish,
    "bin/activate.csh": csh,
}
