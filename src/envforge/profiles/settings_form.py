"""The form of ``config.yaml``: strict, unknown keys forbidden."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from envforge.profiles.forms import Form
from envforge.profiles.hints import without_credentials
from envforge.profiles.values import Filled, Name, index_url, url, wrong

_ORIGIN = "origin"
_PROXY_SCHEMES = ("http", "https", "socks", "socks5", "socks5h")


def _mirror_key(text: str) -> str:
    if "://" in text:
        return index_url(text)
    if not text.strip():
        message = "must be the name or URL of an index"
        raise wrong(message)
    return text


def _mirrors(addresses: list[str]) -> list[str]:
    if _ORIGIN in addresses[:-1]:
        message = f"`{_ORIGIN}` may only stand last: what comes after it is never asked"
        raise wrong(message)
    return addresses


def _mirror(text: str) -> str:
    return text if text == _ORIGIN else index_url(text)


def _https(text: str) -> str:
    return url(text, ("http", "https", "file"))


def _proxy(text: str) -> str:
    """A proxy may need credentials, and has no other place for them; messages show it without."""
    address = text.strip() if "://" in text else f"http://{text.strip()}"
    try:
        parts = urlsplit(address)
        complete = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        complete = False
    if not complete:
        schemes = ", ".join(f"`{scheme}://`" for scheme in _PROXY_SCHEMES)
        message = f"invalid proxy `{without_credentials(text)}`: expected one with {schemes}"
        raise wrong(message)
    return text


def _substitutes(pairs: dict[str, str]) -> dict[str, str]:
    for name, other in pairs.items():
        if name == other:
            message = f"`{name}` cannot stand in for itself"
            raise wrong(message)
    return pairs


Mirrors = Annotated[
    list[Annotated[str, AfterValidator(_mirror)]], Field(min_length=1), AfterValidator(_mirrors)
]  # fmt: skip


class SettingsForm(Form):
    """The configuration of envforge."""

    home: Filled | None = None
    cache: Filled | None = None
    engine: Literal["uv", "pip"] | None = None
    link_mode: Literal["auto", "copy"] | None = None
    keep_generations: Annotated[int | None, Field(ge=1)] = None
    proxy: Annotated[str, AfterValidator(_proxy)] | None = None
    python_mirror: Annotated[str, AfterValidator(_https)] | None = None
    allow_ambient: list[Literal["pip", "uv", "conda"]] = Field(default_factory=list)
    mirrors: dict[Annotated[str, AfterValidator(_mirror_key)], Mirrors] = Field(default_factory=dict)
    substitutes: Annotated[dict[Name, Name], AfterValidator(_substitutes)] = Field(default_factory=dict)
    offline: bool = False
