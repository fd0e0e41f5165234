"""The user's configuration: a flag wins, then the variable ``ENVFORGE_<NAME>``, then ``config.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envforge.model.errors import Mistake, UsageError
from envforge.model.settings import Settings
from envforge.profiles import lookup
from envforge.system import environ

if TYPE_CHECKING:
    from envforge.profiles.tree import Tree

_FILE = "config.yaml"
_PATHS = ("home", "cache")
_TEXTS = ("engine", "link_mode", "proxy", "python_mirror")
_PARSED = ("keep_generations", "allow_ambient", "mirrors", "substitutes", "offline")
_NAMES = (*_PATHS, *_TEXTS, *_PARSED)


def load(flags: Mapping[str, object], config: Path | None = None) -> Settings:
    """Merge flags (those that are None or False were not given), variables, and the file ``config``.

    ``config`` defaults to ``config.yaml`` in the user's configuration folder, which need not exist; one that is named
    must. A variable that is empty counts as not set; those that are no plain text hold YAML (or JSON). Paths of
    the file are relative to its folder.

    Raises InvalidFileError (``invalid-configuration``) with every mistake of file and variables, UsageError for a flag.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    mistakes: list[Mistake] = []
    _take_file(config, values, sources, mistakes)
    _take_variables(values, sources, mistakes)
    if mistakes:
        from envforge.profiles.mistakes import invalid  # noqa: PLC0415 - pydantic, only where something is wrong

        raise invalid("invalid-configuration", "the configuration", mistakes)
    given = {name: value for name, value in flags.items() if name in _NAMES and value not in (None, False)}
    _check_flags(given)
    values |= given
    sources |= dict.fromkeys(given, "flag")
    return _settings(values, sources)


def _take_file(config: Path | None, values: dict[str, Any], sources: dict[str, str], found: list[Mistake]) -> None:
    path = config or lookup.config_folder() / _FILE
    if not lookup.exists(path):
        if config is not None:
            raise UsageError("config-not-found", f"there is no configuration at `{config}`")
        return
    from envforge.profiles import tree  # noqa: PLC0415 - PyYAML, only where there is YAML to read

    try:
        root = tree.read(path)
    except tree.YamlError as error:
        if error.empty:
            return
        found += error.mistakes
        return
    mistakes = _mistakes(root)
    found += mistakes
    if mistakes:
        return
    for name, entry in root.mapping().items():
        value = entry.plain()
        values[name] = path.absolute().parent / lookup.expanded(value) if name in _PATHS else value
        sources[name] = f"{path}:{root.keys[name][0]}"


def _take_variables(values: dict[str, Any], sources: dict[str, str], found: list[Mistake]) -> None:
    variables = environ.variables()
    for name in _NAMES:
        variable = f"ENVFORGE_{name.upper()}"
        text = variables.get(variable, "")
        if not text.strip():
            continue
        if name in _PATHS:
            value: Any = text
        else:
            value, mistakes = _variable(name, variable, text)
            found += mistakes
        values[name] = value
        sources[name] = variable


def _variable(name: str, variable: str, text: str) -> tuple[Any, list[Mistake]]:
    label = f"${variable}"
    if name in _TEXTS:
        return text.strip(), _text_mistakes(name, label, text.strip())
    from envforge.profiles import tree  # noqa: PLC0415 - PyYAML, only where there is YAML to read

    try:
        root = tree.parse(text.encode(errors="surrogateescape"), label, mapping=False)
    except tree.YamlError as error:
        return None, list(error.mistakes)
    if name == "allow_ambient" and isinstance(root.value, str):
        words = [word.strip() for word in root.value.split(",")]
        root = root.with_value([root.with_value(word) for word in words if word])
    if name == "offline" and root.value in (0, 1):
        root = root.with_value(bool(root.value))
    return root.plain(), _mistakes(root.with_value({name: root}))


def _mistakes(root: Tree) -> list[Mistake]:
    from envforge.profiles.mistakes import of_form  # noqa: PLC0415 - pydantic, only where there is something to check
    from envforge.profiles.settings_form import SettingsForm  # noqa: PLC0415 - as above

    return of_form(SettingsForm, root)


def _check_flags(given: Mapping[str, Any]) -> None:
    """Flags come from `cli`, which has checked their types; what is left are choices and addresses."""
    for name in _TEXTS:
        if name in given:
            flag = f"--{name.replace('_', '-')}"
            for mistake in _text_mistakes(name, flag, str(given[name])):
                raise UsageError("invalid-flag", f"`{flag}`: {mistake.message}")


def _text_mistakes(name: str, label: str, text: str) -> list[Mistake]:
    from envforge.profiles.tree import Tree  # noqa: PLC0415 - PyYAML, only where there is something to check

    value = Tree(path=label, line=1, column=1, value=text)
    return _mistakes(value.with_value({name: value}))


def _settings(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    home = _path(values["home"]) if "home" in values else _default_home()
    mirrors = values.get("mirrors", {})
    return Settings(
        home=home,
        cache=_path(values["cache"]) if "cache" in values else home / "cache",
        **{
            name: values[name]
            for name in (*_TEXTS, "keep_generations", "offline")
            if name in values and name != "proxy"
        },
        proxy=_proxy(values["proxy"]) if values.get("proxy") else None,
        allow_ambient=tuple(values.get("allow_ambient", ())),
        mirrors={name: tuple(addresses) for name, addresses in mirrors.items()},
        substitutes=dict(values.get("substitutes", {})),
        sources=dict(sources),
    )


def _path(value: object) -> Path:
    return lookup.expanded(str(value)).absolute()


def _default_home() -> Path:
    import platformdirs  # noqa: PLC0415 - not needed where a home is named

    return Path(platformdirs.user_data_path("envforge"))


def _proxy(text: str) -> str:
    """``socks://`` of desktops becomes ``socks5://``, which httpx and uv know; a bare host and port is HTTP."""
    address = text.strip()
    if "://" not in address:
        return f"http://{address}"
    scheme, _, rest = address.partition("://")
    return f"socks5://{rest}" if scheme.lower() == "socks" else address
