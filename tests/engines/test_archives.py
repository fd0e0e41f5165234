"""A package's archive comes from the first mirror that gives the very file, and is served again to who asks for it."""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

import httpx
import pytest
from kit.channel import Channel as Site
from kit.channel import Package
from kit.index import Fault, serve
from kit.server import Server

from envforge.engines.archives import fetch, served
from envforge.engines.channels import Channel
from envforge.engines.origins import ORIGIN
from envforge.model.errors import EnvforgeError
from envforge.model.state import Distribution, package_key
from envforge.store.bundles.writing import InMemory
from envforge.system import http
from envforge.system.http import Client, Proxies

DATA = Package(name="data", version="1!2.0", files={"share/data": "x\n"})


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def record(place: str) -> Distribution:
    return Distribution(
        name=package_key("data"),
        version="1!2.0",
        index="forge",
        file=DATA.filename,
        url=f"{place}/{DATA.subdir}/{DATA.filename}",
        sha256=hashlib.sha256(DATA.bytes()).hexdigest(),
    )


def fetched(server: Server, into: Path, *mirrors: str, offline: bool = False, told: list[int] | None = None) -> Path:
    item = record(server.url("forge"))
    channel = Channel(name="forge", place=server.url("forge"), mirrors=mirrors)
    client = Client(Proxies())
    try:
        more = (told if told is not None else []).append
        return fetch(client, [channel], item, into, more, offline=offline)
    finally:
        client.close()


def test_mirrors_are_asked_in_order_until_one_gives_the_very_file(tmp_path: Path) -> None:
    other = Site(packages=[DATA], faults=[Fault(file="*", other=True)])
    with serve({"forge": Site(packages=[DATA]), "bare": Site(), "other": other}) as server:
        told: list[int] = []
        path = fetched(server, tmp_path, server.url("bare"), server.url("other"), ORIGIN, told=told)
        assert path.read_bytes() == DATA.bytes()
        assert (path.name, sum(told) >= len(DATA.bytes())) == (record("").sha256, True)
        # What is there is taken, offline too.
        assert fetched(server, tmp_path, offline=True) == path
        path.unlink()
        with pytest.raises(EnvforgeError, match=re.escape(f"`{DATA.filename}` cannot be had")) as caught:
            fetched(server, tmp_path, server.url("bare"), server.url("other"))
        cause = caught.value.cause or ""
        assert cause.index("status 404") < cause.index(hashlib.sha256(DATA.tampered()).hexdigest())
        with pytest.raises(EnvforgeError, match="offline"):
            fetched(server, tmp_path, offline=True)
    assert list(tmp_path.iterdir()) == []


def test_a_channel_that_wants_credentials_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"forge": Site(packages=[DATA], auth="somebody:hush")}) as server:
        with pytest.raises(EnvforgeError) as caught:
            fetched(server, tmp_path)
        assert "status 401" in (caught.value.cause or "")
        monkeypatch.setenv("ENVFORGE_INDEX_FORGE_USERNAME", "somebody")
        monkeypatch.setenv("ENVFORGE_INDEX_FORGE_PASSWORD", "hush")
        assert fetched(server, tmp_path).read_bytes() == DATA.bytes()


def test_a_channel_that_is_a_folder_is_read_where_it_lies(tmp_path: Path) -> None:
    place = tmp_path / "a channel"
    file = place / DATA.subdir / DATA.filename
    file.parent.mkdir(parents=True)
    file.write_bytes(DATA.bytes())
    client = Client(Proxies())
    assert fetch(client, (), record(place.as_uri()), tmp_path, offline=True) == file


def test_what_is_on_the_shelf_is_served_and_nothing_else() -> None:
    item = record("https://forge.invalid/label/main")
    shelf = {str(item.sha256): InMemory(DATA.bytes())}
    with served([item], shelf) as places:
        [(place, url)] = places.items()
        assert place == "https://forge.invalid/label/main/"
        # An address may be written in more than one way.
        for name in (DATA.filename, DATA.filename.replace("!", "%21")):
            assert httpx.get(f"{url}/{DATA.subdir}/{name}").content == DATA.bytes()
        assert httpx.get(f"{url}/{DATA.subdir}/other").status_code == 404
    with served([item], {}) as places:
        assert places == {}
