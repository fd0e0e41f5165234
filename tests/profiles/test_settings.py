"""Flag, variable, file: who wins, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envforge.model.errors import InvalidFileError, UsageError
from envforge.model.settings import Settings
from envforge.profiles import settings


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without configuration of its own."""
    import os

    for name in list(os.environ):
        if name.startswith("ENVFORGE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "envforge" / "config.yaml"
    path.parent.mkdir(parents=True)
    return path


def test_the_defaults(tmp_path: Path) -> None:
    home = tmp_path / "data" / "envforge"
    assert settings.load({"home": None, "offline": False}) == Settings(home=home, cache=home / "cache")


def test_the_file(config: Path) -> None:
    config.write_text(
        """\
home: envs
cache: /cache
engine: pip
link_mode: copy
keep_generations: 5
proxy: socks://127.0.0.1:7890/
python_mirror: https://python.example/
allow_ambient: [pip, conda]
mirrors:
  pypi: [https://mirror.example/simple, origin]
  https://one.example/simple: [https://two.example/simple]
substitutes: {torch-cu126: pypi, vllm: pypi}
offline: true
""",
        encoding="utf-8",
    )
    found = settings.load({})
    assert found.home == config.parent / "envs"
    assert found.cache == Path("/cache")
    assert (found.engine, found.link_mode, found.keep_generations, found.offline) == ("pip", "copy", 5, True)
    assert found.proxy == "socks5://127.0.0.1:7890/"
    assert found.python_mirror == "https://python.example/"
    assert found.allow_ambient == ("pip", "conda")
    assert found.mirrors == {
        "pypi": ("https://mirror.example/simple", "origin"),
        "https://one.example/simple": ("https://two.example/simple",),
    }
    assert found.substitutes == {"torch-cu126": "pypi", "vllm": "pypi"}
    assert found.sources["mirrors"] == f"{config}:9"
    assert found.sources["home"] == f"{config}:1"


def test_flag_before_variable_before_file(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("home: /file\nlink_mode: copy\nkeep_generations: 5\n", encoding="utf-8")
    monkeypatch.setenv("ENVFORGE_HOME", "/variable")
    monkeypatch.setenv("ENVFORGE_LINK_MODE", "auto")
    monkeypatch.setenv("ENVFORGE_CACHE", " ")
    found = settings.load({"home": tmp_path / "flag", "engine": None})
    assert (found.home, found.link_mode, found.keep_generations) == (tmp_path / "flag", "auto", 5)
    assert found.cache == tmp_path / "flag" / "cache"
    assert found.sources == {
        "home": "flag",
        "link_mode": "ENVFORGE_LINK_MODE",
        "keep_generations": f"{config}:3",
    }


def test_variables_hold_yaml_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_MIRRORS", '{"pypi": ["https://mirror.example/simple"]}')
    monkeypatch.setenv("ENVFORGE_SUBSTITUTES", "{vllm: pypi}")
    monkeypatch.setenv("ENVFORGE_ALLOW_AMBIENT", "pip, uv")
    monkeypatch.setenv("ENVFORGE_KEEP_GENERATIONS", "7")
    monkeypatch.setenv("ENVFORGE_OFFLINE", "1")
    monkeypatch.setenv("ENVFORGE_HOME", "~/here")
    found = settings.load({})
    assert found.mirrors == {"pypi": ("https://mirror.example/simple",)}
    assert found.substitutes == {"vllm": "pypi"}
    assert (found.allow_ambient, found.keep_generations, found.offline) == (("pip", "uv"), 7, True)
    assert found.home == Path.home() / "here"


def test_every_mistake_in_one_go(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(
        """\
hme: x
engine: conda
keep_generations: 0
mirrors:
  pypi: [origin, https://me:secret@a.example/s]
  https://me:secret@a.example/s: []
substitutes: {a: a}
allow_ambient: [pipp]
proxy: ftp://me:secret@a.example
""",
        encoding="utf-8",
    )
    monkeypatch.setenv("ENVFORGE_KEEP_GENERATIONS", "many")
    monkeypatch.setenv("ENVFORGE_SUBSTITUTES", "{a: [b]}")
    monkeypatch.setenv("ENVFORGE_MIRRORS", "{a")
    monkeypatch.setenv("ENVFORGE_LINK_MODE", "reflink")
    with pytest.raises(InvalidFileError) as caught:
        settings.load({})
    assert caught.value.code == "invalid-configuration"
    credentials = (
        "credentials in the URL `https://***@a.example/s`: "
        "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
    )
    assert [str(mistake).removeprefix(f"{config}:") for mistake in caught.value.mistakes] == [
        "$ENVFORGE_KEEP_GENERATIONS:1:1: expected a whole number, found the string `many`",
        "$ENVFORGE_LINK_MODE:1:1: expected `auto` or `copy`, found the string `reflink`",
        "$ENVFORGE_MIRRORS:1:3: YAML: while parsing a flow mapping expected ',' or '}', but got '<stream end>'",
        "$ENVFORGE_SUBSTITUTES:1:5: expected a string, found a list",
        "1:1: unknown key `hme`; did you mean `home`?",
        "2:9: expected `uv` or `pip`, found the string `conda`",
        "3:19: expected at least 1, found the number `0`",
        f"5:18: {credentials}",
        f"6:3: {credentials}",
        "6:34: must not be empty",
        "7:14: `a` cannot stand in for itself",
        "8:17: expected `pip`, `uv` or `conda`, found the string `pipp`; did you mean `pip`?",
        "9:8: invalid proxy `ftp://***@a.example`: expected one with `http://`, `https://`, `socks://`, `socks5://`, `socks5h://`",
    ]


def test_origin_stands_last(config: Path) -> None:
    config.write_text("mirrors: {pypi: [origin, https://a.example/s]}\n", encoding="utf-8")
    with pytest.raises(InvalidFileError) as caught:
        settings.load({})
    assert str(caught.value.mistakes[0]).endswith(
        ":1:17: `origin` may only stand last: what comes after it is never asked"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("socks://h:1", "socks5://h:1"),
        ("SOCKS://h:1", "socks5://h:1"),
        ("socks5h://h:1", "socks5h://h:1"),
        ("http://me:pw@h:1", "http://me:pw@h:1"),
        ("h:1", "http://h:1"),
    ],
)
def test_proxies(given: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_PROXY", given)
    assert settings.load({}).proxy == expected


def test_a_named_configuration_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        settings.load({}, tmp_path / "gone.yaml")
    assert caught.value.code == "config-not-found"


def test_a_named_configuration_replaces_the_users(config: Path, tmp_path: Path) -> None:
    config.write_text("engine: pip\n", encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_text("# nothing set\n", encoding="utf-8")
    assert settings.load({}, other).engine == "uv"


def test_a_flag_is_checked_too() -> None:
    with pytest.raises(UsageError, match=r"`--engine`: expected `uv` or `pip`, found the string `conda`"):
        settings.load({"engine": "conda"})


def test_without_anything_set_nothing_is_paid_for() -> None:
    program = (
        "import sys; from envforge.profiles import settings; settings.load({'home': '/x'}); "
        "print('pydantic' in sys.modules, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_plain())
    assert done.stdout == "False False\n"


def _plain() -> dict[str, str]:
    import os

    return {
        "HOME": os.environ["HOME"],
        "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"],
        "PYTHONPATH": ":".join(sys.path),
    }
