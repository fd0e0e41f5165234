"""Which source may answer for which name, and who gets which password."""

from __future__ import annotations

from pathlib import Path

import pytest

from envforge.engines.origins import Origin, Routes, credentials, key_of, routes
from envforge.model.errors import UsageError
from envforge.model.profile import Index, Profile
from envforge.model.settings import Settings

DEFAULT = "https://default.example/simple/"
TORCH = Index(name="torch-cu126", url="https://torch.example/whl/cu126", packages=("torch", "nvidia-*"))
PYPI = Index(name="pypi")


def made(*indexes: Index, **settings: object) -> Routes:
    profile = Profile(name="demo", source="demo.yaml", text="", indexes=indexes)
    return routes(profile, Settings(home=Path("/h"), cache=Path("/c"), **settings), DEFAULT)  # type: ignore[arg-type]


def names(given: Routes, keys: tuple[str, ...]) -> list[str]:
    return [given.origins[key].name for key in keys]


@pytest.mark.parametrize(
    ("name", "only", "expected"),
    [
        ("torch", None, ["torch-cu126"]),
        ("nvidia-nccl-cu12", None, ["torch-cu126"]),
        ("nvidia", None, ["pypi"]),
        ("torchvision", None, ["pypi"]),
        ("six", None, ["pypi"]),
        ("six", ("torch-cu126",), []),
        ("torch", ("pypi",), []),
        ("torch", ("pypi", "torch-cu126"), ["torch-cu126"]),
        ("six", (), []),
    ],
)
def test_a_list_of_packages_means_both_ways(name: str, only: tuple[str, ...] | None, expected: list[str]) -> None:
    given = made(TORCH, PYPI)
    assert names(given, given.allowed(name, only)) == expected


def test_without_a_list_the_order_decides() -> None:
    given = made(Index(name="b", url="https://b"), Index(name="a", url="https://a"), PYPI)
    assert names(given, given.allowed("six")) == names(given, given.order()) == ["b", "a", "pypi"]
    assert names(given, given.order(("pypi", "b"))) == ["b", "pypi"]


def test_no_index_is_the_default_index() -> None:
    given = made()
    assert names(given, given.allowed("six")) == ["pypi"]
    assert next(iter(given.origins.values())).url == DEFAULT


def test_a_substitute_takes_over_what_it_replaces() -> None:
    given = made(TORCH, PYPI, substitutes={"torch-cu126": "pypi"})
    assert names(given, given.allowed("torch")) == ["pypi"]
    assert names(given, given.order()) == ["pypi"]
    alone = made(TORCH, substitutes={"torch-cu126": "pypi"})
    assert names(alone, alone.allowed("torch")) == ["pypi"]
    with pytest.raises(UsageError, match="no such index") as caught:
        made(TORCH, PYPI, substitutes={"torch-cu126": "nobody"})
    assert caught.value.code == "unknown-substitute"
    assert made(PYPI, substitutes={"torch-cu126": "nobody"}).origins


@pytest.mark.parametrize("key", ["torch-cu126", "https://torch.example/whl/cu126"])
def test_mirrors_by_name_or_address(key: str) -> None:
    given = made(TORCH, mirrors={key: ("https://m.example/cu126", "origin")})
    (origin,) = given.origins.values()
    assert origin.sources == ("https://m.example/cu126", TORCH.url)
    (plain,) = made(TORCH).origins.values()
    assert plain.key == origin.key


@pytest.mark.parametrize(
    "other", ["https://A.example/simple", "HTTPS://a.example/simple/", "https://u:p@a.example/simple"]
)
def test_one_address_has_one_key(other: str) -> None:
    assert key_of(other) == key_of("https://a.example/simple/")


@pytest.mark.parametrize(
    "other", ["https://a.example/Simple/", "https://a.example:444/simple/", "http://a.example/simple/"]
)
def test_another_address_has_another_key(other: str) -> None:
    assert key_of(other) != key_of("https://a.example/simple/")


# -- credentials ---------------------------------------------------------------------------------------------------

ORIGIN = Origin(
    name="my.Index-1",
    key="k",
    url="https://a.example/simple",
    sources=("https://m.example/x", "https://a.example/simple"),
)


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    return tmp_path / ".netrc"


def netrc(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/files/x.whl", ("me", "secret")),
        ("https://m.example/files/x.whl", ("me", "secret")),
        ("https://b.example/files/x.whl", None),
        ("https://a.example.evil/x.whl", None),
        ("https://a.example:8443/x.whl", None),
        ("https://a.example@evil.example/x.whl", None),
        ("x.whl", None),
    ],
)
def test_credentials_of_an_index(monkeypatch: pytest.MonkeyPatch, url: str, expected: tuple[str, str] | None) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_MY_INDEX_1_USERNAME", "me")
    monkeypatch.setenv("ENVFORGE_INDEX_MY_INDEX_1_PASSWORD", "secret")
    assert credentials(ORIGIN, url) == expected


@pytest.mark.parametrize("url", ["https://A.Example/x.whl", "https://a.example:443/x.whl"])
def test_one_host_in_two_spellings(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_MY_INDEX_1_PASSWORD", "secret")
    assert credentials(ORIGIN, url) == ("", "secret")


def test_a_password_is_not_sent_over_a_plain_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_MY_INDEX_1_PASSWORD", "secret")
    assert credentials(ORIGIN, "http://a.example/x.whl") is None


def test_netrc(empty: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert credentials(ORIGIN, "https://a.example/x.whl") is None
    netrc(empty, "machine a.example login me password secret")
    assert credentials(ORIGIN, "https://a.example/x.whl") == ("me", "secret")
    assert credentials(ORIGIN, "https://b.example/x.whl") is None
    other = tmp_path / "other"
    netrc(other, "machine b.example login you password hidden")
    monkeypatch.setenv("NETRC", str(other))
    assert credentials(ORIGIN, "https://b.example/x.whl") == ("you", "hidden")
    assert credentials(ORIGIN, "https://a.example/x.whl") is None


def test_a_netrc_that_makes_no_sense(empty: Path) -> None:
    netrc(empty, "machine machine what\nlogin")
    assert credentials(ORIGIN, "https://a.example/x.whl") is None


def test_a_netrc_in_another_encoding(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda *_: "utf-8")
    netrc(empty, b"machine a.example login me password s\xe9cret\n")
    assert credentials(ORIGIN, "https://b.example/x.whl") is None
