"""Nothing that the host says about pip, uv, Python or conda gets in, unless it is let in."""

from __future__ import annotations

import os
import re

import pytest

from envforge.system import environ

HOST = {
    "PIP_INDEX_URL": "x", "PIP_CONFIG_FILE": "/host/pip.conf", "PIP_REQUIRE_VIRTUALENV": "1",
    "UV_INDEX_URL": "x", "UV_CONFIG_FILE": "x", "UV_PYTHON": "x", "UV_EXTRA_INDEX_URL": "x",
    "PYTHONPATH": "x", "PYTHONHOME": "x", "PYTHONSTARTUP": "x", "PYTHONUSERBASE": "x",
    "CONDA_PREFIX": "x", "CONDARC": "x", "VIRTUAL_ENV": "x", "LD_LIBRARY_PATH": "x", "LD_PRELOAD": "x",
    "http_proxy": "x", "HTTPS_PROXY": "x", "ALL_PROXY": "x", "NO_PROXY": "x", "SECRET_TOKEN": "x",
    "ENVFORGE_INDEX_A_PASSWORD": "x", "LC_ALL": "tlh", "LANG": "tlh",
    "PATH": "/bin", "HOME": "/home/me", "SSL_CERT_FILE": "/certs.pem", "SSH_AUTH_SOCK": "/sock",
}  # fmt: skip


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in HOST.items():
        monkeypatch.setenv(name, value)


def test_only_what_an_engine_needs_gets_in() -> None:
    assert environ.hermetic() == {
        "PATH": "/bin", "HOME": "/home/me", "SSL_CERT_FILE": "/certs.pem", "SSH_AUTH_SOCK": "/sock",
        "LC_ALL": "C.UTF-8", "PYTHONNOUSERSITE": "1", "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1",
    }  # fmt: skip


@pytest.mark.parametrize("tool", ["pip", "uv", "conda"])
def test_a_tool_that_is_let_in_brings_its_own_variables_only(tool: str) -> None:
    given = environ.hermetic(allow=(tool,))
    prefix = f"{tool.upper()}_"
    assert {name for name in given if name.startswith(prefix)} == {name for name in HOST if name.startswith(prefix)}
    assert all(given[name] == HOST[name] for name in given if name.startswith(prefix))
    others = [name for name in given if re.match("PIP_|UV_|CONDA|PYTHON", name) and not name.startswith(prefix)]
    assert set(others) <= {"PIP_CONFIG_FILE", "UV_NO_CONFIG", "PYTHONNOUSERSITE"}
    assert given.get("PIP_CONFIG_FILE") == (HOST["PIP_CONFIG_FILE"] if tool == "pip" else os.devnull)


def test_what_is_given_wins() -> None:
    assert environ.hermetic({"PATH": "/mine", "PIP_X": "1"})["PATH"] == "/mine"
    assert environ.hermetic({"UV_PYTHON": "mine"}, allow=("uv",))["UV_PYTHON"] == "mine"


def test_nothing_of_the_process_itself_changes() -> None:
    before = dict(os.environ)
    environ.hermetic({"A": "b"}, allow=("pip",))["C"] = "d"
    assert dict(os.environ) == before


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert environ.user() == str(os.getuid())


def test_facts_of_the_host() -> None:
    assert environ.architecture()
    assert environ.operating_system() == "Linux"
    assert re.fullmatch(r"\d+\.\d+", environ.glibc() or "2.0")
