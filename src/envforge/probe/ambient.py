"""What the host's configuration says to pip, uv, conda, Python and the linker: the names of settings, never values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from configparser import Error as ConfigError
from configparser import RawConfigParser
from pathlib import Path

from envforge.model.machine import Ambient, Proxy
from envforge.system import environ, http

from . import condarc

# Python's own variables that change what is imported or how; those that only protect are no leak.
_PYTHON = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONOPTIMIZE", "PYTHONWARNINGS",
    "PYTHONPYCACHEPREFIX", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONCASEOK", "PYTHONEXECUTABLE",
)  # fmt: skip
_LINKER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT")
# Set by `conda activate` and by conda's shell hook: they say where conda is, they configure nothing.
_CONDA_STATE = re.compile(
    r"CONDA_(EXE|PYTHON_EXE|SHLVL|DEFAULT_ENV|PROMPT_MODIFIER|PREFIX(_\d+)?|ROOT|BAT|STACKED_\d+|OLD_.*|BACKUP_.*)"
)
_ALWAYS_UNSAFE = "socks://"


def look() -> tuple[Ambient, ...]:
    """All of it, in stable order: pip, uv, conda, python, linker, proxy; files before variables."""
    return (*_pip(), *_uv(), *_conda(), *_named("python", _PYTHON), *_named("linker", _LINKER), *_proxies())


def user_site() -> str | None:
    """The newest user site-packages (of any Python 3) that holds something; None if none does."""
    base = Path(environ.variables().get("PYTHONUSERBASE") or _home() / ".local")
    for folder in sorted((base / "lib").glob("python3*/site-packages"), key=_minor, reverse=True):
        try:
            if any(folder.iterdir()):
                return str(folder)
        except OSError:
            continue
    return None


def proxies() -> tuple[Proxy, ...]:
    """The variables that name a proxy, without credentials."""
    found = []
    for name in (spelling for lower in environ.PROXY_NAMES for spelling in (lower, lower.upper())):
        url = _set(name).strip()
        if url and name.lower() != "no_proxy":
            whole = url if "://" in url else f"http://{url}"
            found.append(Proxy(variable=name, url=http.without_credentials(whole)))
    return tuple(found)


def _minor(folder: Path) -> int:
    digits = re.match(r"python3\.(\d+)", folder.parent.name)
    return int(digits[1]) if digits else 0


def _home() -> Path:
    return Path(environ.variables().get("HOME") or "~").expanduser()


def _set(name: str) -> str:
    return environ.variables().get(name) or ""


def _config_home() -> Path:
    return Path(_set("XDG_CONFIG_HOME") or _home() / ".config")


def _config_folders() -> list[Path]:
    return [Path(folder) for folder in (_set("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if folder]


def _pip() -> Iterator[Ambient]:
    named = _set("PIP_CONFIG_FILE")
    # pip reads no file at all where the variable says /dev/null, and not the user's where it names one that exists.
    if named != os.devnull:
        files = [folder / "pip" / "pip.conf" for folder in _config_folders()] + [Path("/etc/pip.conf")]
        if named and Path(named).exists():
            files.append(Path(named))
        else:
            files += [_home() / ".pip" / "pip.conf", _config_home() / "pip" / "pip.conf"]
        yield from _files("pip", files, _ini)
    yield from _prefixed("pip", "PIP_", without=("PIP_CONFIG_FILE",))


def _uv() -> Iterator[Ambient]:
    named = _set("UV_CONFIG_FILE")
    if named:
        yield from _files("uv", [Path(named)], _toml)
    elif not _set("UV_NO_CONFIG"):
        system = [folder / "uv" / "uv.toml" for folder in _config_folders()] + [Path("/etc/uv/uv.toml")]
        yield from _files("uv", [path for path in system if path.is_file()][:1], _toml)
        yield from _files("uv", [_config_home() / "uv" / "uv.toml"], _toml)
    yield from _prefixed("uv", "UV_", without=("UV_CONFIG_FILE", "UV_NO_CONFIG"))


def _conda() -> Iterator[Ambient]:
    yield from _files("conda", condarc.files(), _yaml)
    names = [name for name in sorted(environ.variables()) if name.startswith("CONDA_") and _set(name)]
    yield from _named("conda", tuple(name for name in names if not _CONDA_STATE.fullmatch(name)))


def _files(tool: str, paths: Iterable[Path], names: Callable[[str], list[str]]) -> Iterator[Ambient]:
    """One for each file that sets something or cannot be read: what it sets is then not known."""
    for path in dict.fromkeys(paths):
        try:
            if not path.is_file():
                continue
            settings = names(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError, ConfigError):
            yield Ambient(tool=tool, source=str(path))
            continue
        if settings:
            yield Ambient(tool=tool, source=str(path), settings=tuple(settings))


def _ini(text: str) -> list[str]:
    parser = RawConfigParser()
    parser.read_string(text)
    return [f"{section}.{option}" for section in parser.sections() for option in parser.options(section)]


def _toml(text: str) -> list[str]:
    import tomllib  # noqa: PLC0415 - only where there is such a file

    return list(tomllib.loads(text))


def _yaml(text: str) -> list[str]:
    """The top-level keys, which is all that is told; no need to load a parser for them."""
    return re.findall(r"^([A-Za-z_][\w-]*)\s*:", text, flags=re.MULTILINE)


def _prefixed(tool: str, prefix: str, *, without: tuple[str, ...]) -> Iterator[Ambient]:
    for name in sorted(environ.variables()):
        if name.startswith(prefix) and name not in without and _set(name):
            setting = name.removeprefix(prefix).lower().replace("_", "-")
            yield Ambient(tool=tool, source=f"${name}", settings=(setting,))


def _named(tool: str, names: tuple[str, ...]) -> Iterator[Ambient]:
    yield from (Ambient(tool=tool, source=f"${name}", settings=(name,)) for name in names if _set(name))


def _proxies() -> Iterator[Ambient]:
    """Those with the scheme ``socks://``, which desktops write and hardly any library understands."""
    for lower in environ.PROXY_NAMES:
        for name in (lower, lower.upper()):
            if _set(name).lower().startswith(_ALWAYS_UNSAFE):
                yield Ambient(tool="proxy", source=f"${name}", settings=("socks",))
