"""What a step that cannot be solved, and an index that cannot be reached, say to the user."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from engines.house import House
from kit.index import Index, serve
from kit.wheels import Sdist, Wheel

from envforge.model.errors import EnvforgeError
from envforge.model.progress import Working
from envforge.system import http

ONE = Wheel(name="six", version="1.0.0")
TWO = Wheel(name="six", version="2.0.0")
NEEDY = Wheel(name="needy", version="1.0.0", requires=("six>=2",))
BASE = {"name": "base", "install": ["six<2"]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ({"keep": ["si*"], "constrain": True}, "`six==1.0.0` comes from the guard `keep si*`; `allow: [six]`"),
        ({"hold": "six<2", "constrain": True}, "`six<2` comes from the guard `hold six<2`; `allow: [six]`"),
        ({"hold": "other<2", "constrain": True}, None),
    ],
)
def test_a_guard_in_the_way_is_named(tmp_path: Path, guard: dict[str, object], said: str | None) -> None:
    step = {"name": "late", "install": ["needy"], "constraints": [] if said else ["six<2"]}
    with serve({"pypi": Index(artefacts=[ONE, TWO, NEEDY])}) as server, pytest.raises(EnvforgeError) as caught:
        House(tmp_path, server).plan([BASE, step], guards=[guard])
    assert caught.value.code == "unsolvable"
    assert (said or "loosen one of the two requirements") in (caught.value.hint or "")


def test_a_backfill_cannot_allow(tmp_path: Path) -> None:
    step = {"name": "late", "backfill": ["needy"]}
    with serve({"pypi": Index(artefacts=[ONE, TWO, NEEDY])}) as server, pytest.raises(EnvforgeError) as caught:
        House(tmp_path, server).plan([BASE, step], guards=[{"keep": ["six"], "constrain": True}])
    assert caught.value.hint == "`six==1.0.0` comes from the guard `keep six`"


@pytest.mark.parametrize("asked", ["six==99.9", "six>99"])
def test_a_version_that_is_nowhere_is_no_clash(tmp_path: Path, asked: str) -> None:
    with serve({"pypi": Index(artefacts=[ONE])}) as server, pytest.raises(EnvforgeError) as caught:
        House(tmp_path, server).plan([{"name": "a", "install": [asked]}])
    assert f"no index that the step may ask has `{asked}`" in (caught.value.hint or "")


def test_a_dead_proxy_is_named_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serve({"pypi": Index(artefacts=[ONE])}) as server:
        made = House(tmp_path, server, proxy="http://me:secret@127.0.0.1:9")
        made.indexes = [{"name": "away", "url": "https://index.example.org/simple"}]
        with pytest.raises(EnvforgeError) as caught:
            made.plan([{"name": "a", "install": ["six"]}])
    assert caught.value.code == "index-unreachable"
    assert "(through the proxy `http://127.0.0.1:9`)" in (caught.value.cause or "")
    assert "`substitutes`" in (caught.value.hint or "")


def test_what_is_being_built_is_told(tmp_path: Path) -> None:
    sdists = [Sdist(wheel=Wheel(name=name, version="1.0.0"), metadata="dynamic") for name in ("first", "second")]
    with serve({"pypi": Index(artefacts=sdists)}) as server:
        made = House(tmp_path, server)
        made.plan([{"name": "a", "install": ["first", "second"]}])
    told = [progress.what for progress in made.told if isinstance(progress, Working)]
    assert {what[-8:] for what in told if what and what.startswith("building ")} == {"(1 of 2)", "(2 of 2)"}
    assert told[-1] is None
