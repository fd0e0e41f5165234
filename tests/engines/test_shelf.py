"""The router and files that need not be asked for: brought along, or fetched to another place."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from engines.rig import indexes, rig, site
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.model.profile import Index as Listed
from envforge.model.state import Distribution
from envforge.store.bundles.writing import InMemory
from envforge.system import http

ONE = Wheel(name="six", version="1.0.0")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def test_what_lies_on_the_shelf_is_asked_of_nobody(tmp_path: Path) -> None:
    data = ONE.bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    item = Distribution(name="six", version=ONE.version, file=ONE.filename, sha256=sha256, index="pypi")
    nowhere = [Listed(name="pypi", url="http://127.0.0.1:1/simple/")]
    with rig(tmp_path, nowhere, offline=True, shelf={sha256: InMemory(data)}) as made:
        artefact = made.router.locked(item)
        assert made.router.kept(artefact)
        assert made.router.metadata(artefact) == ONE.metadata().encode()
        prefix = made.venv()
        made.install(prefix, [artefact])
        assert (site(prefix) / "six/__init__.py").exists()
    with rig(tmp_path, nowhere, offline=True) as made:
        assert not made.router.kept(made.router.locked(item))


def test_a_file_is_fetched_to_another_place_unless_the_cache_has_it(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    came: list[int] = []
    with serve({"pypi": Index(artefacts=[ONE])}) as server, rig(tmp_path, indexes(server)) as made:
        artefact = made.router.find("six", ONE.version)
        path = made.router.fetch(artefact, place, came.append)
        assert (path, sum(came)) == (place / artefact.id, len(ONE.bytes()))
        assert path.read_bytes() == ONE.bytes()
        assert made.router.fetch(artefact, place) == path
        assert len(server.requests("file", "six-*.whl")) == 1
        kept = made.router.fetch(artefact)
        assert kept != path
        assert made.router.fetch(artefact, place) == kept
