"""What `scripts/environment.py` takes from the host's pip and proxies, and what it says about them."""

from __future__ import annotations

import os

import pytest
from environment import origins, pip_variables, proxies, read_settings

LISTING = """\
:env:.find-links='/opt/wheels'
:env:.user='1'
global.constraint='/etc/constraints.txt'
global.extra-index-url='https://one.invalid/simple\\nhttps://two.invalid/simple'
global.find-links='/elsewhere'
global.index-url='https://global.invalid/simple'
install.index-url='https://me:secret@mirror.invalid/simple'
download.index-url='https://download.invalid/simple'
install.target='/tmp'
"""


def test_of_pips_configuration_the_places_are_kept_and_the_nearer_section_wins() -> None:
    assert read_settings(LISTING) == {
        "extra-index-url": "https://one.invalid/simple\nhttps://two.invalid/simple",
        "find-links": "/opt/wheels",
        "index-url": "https://me:secret@mirror.invalid/simple",
    }


def test_nothing_configured() -> None:
    assert read_settings("") == {}
    assert origins({}) == "pip's default index"
    assert proxies({}) == "without a proxy"


def test_pip_gets_the_kept_settings_and_nothing_else_of_the_host() -> None:
    inherited = {"PIP_USER": "1", "PYTHONPATH": "/x", "PYTHONHOME": "/y", "HOME": "/home/me"}

    variables = pip_variables({"index-url": "https://mirror.invalid/simple"}, inherited)

    assert variables.pop("PYTHONPATH").endswith("pip-socks")
    assert variables == {
        "HOME": "/home/me",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "https://mirror.invalid/simple",
    }


def test_places_are_told_without_credentials() -> None:
    assert origins(read_settings(LISTING)) == (
        "https://mirror.invalid/simple, https://one.invalid/simple, https://two.invalid/simple, /opt/wheels"
        " (pip's configuration)"
    )


def test_without_an_index_the_folders_are_told() -> None:
    assert origins({"no-index": "true", "find-links": "/a /b"}) == "/a, /b (pip's configuration)"
    assert origins({"no-index": "1"}) == "nowhere (pip's configuration)"


@pytest.mark.parametrize(
    ("written", "passed"),
    [
        ("socks://127.0.0.1:1080/", "socks5h://127.0.0.1:1080/"),
        ("SOCKS://host:1", "socks5h://host:1"),
        ("socks5://host:1", "socks5://host:1"),
        ("http://host:1", "http://host:1"),
        ("", ""),
    ],
)
def test_a_desktops_socks_address_becomes_one_that_pip_knows(written: str, passed: str) -> None:
    assert pip_variables({}, {"ALL_PROXY": written})["ALL_PROXY"] == passed
    assert pip_variables({"proxy": written}, {})["PIP_PROXY"] == passed


def test_a_proxy_is_told_without_credentials_and_pips_own_wins() -> None:
    host = {"https_proxy": "http://me:secret@proxy.invalid:3128", "NO_PROXY": "localhost"}

    assert proxies(host) == "through the proxy http://proxy.invalid:3128"
    assert proxies({**host, "PIP_PROXY": "me:secret@other.invalid:80"}) == "through the proxy other.invalid:80"
