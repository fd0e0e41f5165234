"""Wheels of our own: kept once, found again, and never believed blindly."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
from kit.wheels import Wheel

from envforge.engines.built import BuiltStore, BuiltWheel
from envforge.model.errors import EnvforgeError
from envforge.model.state import Origin

WHEEL = Wheel(name="Some.Tool", version="1.0+local", build="2")
ORIGIN = Origin(kind="sdist", url="https://x/y.tar.gz", sha256="ab" * 32)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / WHEEL.filename
    path.write_bytes(WHEEL.bytes())
    return path


def kept(tmp_path: Path, wheel: Path, source: str | None = "source") -> tuple[BuiltStore, BuiltWheel]:
    store = BuiltStore(tmp_path / "store", "cp311-linux_x86_64")
    return store, store.keep(wheel, ORIGIN, source)


def test_what_is_kept_is_found_again(tmp_path: Path, wheel: Path) -> None:
    store, own = kept(tmp_path, wheel)
    assert (own.name, own.version, own.file, own.size) == ("some-tool", "1.0+local", wheel.name, wheel.stat().st_size)
    wheel.unlink()
    for each in (store, BuiltStore(tmp_path / "store", "cp311-linux_x86_64")):
        assert each.of_source("source") == each.by_hash(own.sha256) == own
        assert each.path(own.sha256).read_bytes() == WHEEL.bytes()
        assert each.metadata(own.sha256) == WHEEL.metadata().encode()
        assert each.of_source("other") is None


def test_another_target_shares_no_build(tmp_path: Path, wheel: Path) -> None:
    _, own = kept(tmp_path, wheel)
    other = BuiltStore(tmp_path / "store", "cp310-linux_x86_64")
    assert other.of_source("source") is None
    assert other.by_hash(own.sha256) == own


def test_only_an_offer_makes_a_candidate(tmp_path: Path, wheel: Path) -> None:
    store, own = kept(tmp_path, wheel)
    assert (store.offers, store.offered("some-tool")) == (False, None)
    store.offer(own)
    assert (store.offers, store.offered("some-tool")) == (True, own)


@pytest.mark.parametrize("key", ["", "x", "../../etc/passwd", "AB" * 32, "ab" * 32 + "\n", "ab" * 31 + "/.", "ab" * 32])
def test_what_is_no_hash_or_unknown(tmp_path: Path, wheel: Path, key: str) -> None:
    store, _ = kept(tmp_path, wheel)
    assert store.by_hash(key) is None
    with pytest.raises(EnvforgeError, match="no longer"):
        store.path(key)


def test_a_wheel_that_is_gone(tmp_path: Path, wheel: Path) -> None:
    _, own = kept(tmp_path, wheel)
    shutil.rmtree(tmp_path / "store/wheels")
    store = BuiltStore(tmp_path / "store", "cp311-linux_x86_64")
    assert store.of_source("source") is None
    with pytest.raises(EnvforgeError, match="no longer"):
        store.metadata(own.sha256)


def about(tmp_path: Path, own: BuiltWheel) -> Path:
    return tmp_path / "store/wheels" / own.sha256 / "about.json"


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "{}", '{"name": "x"}', '{"origin": null}', '{"origin": {"a": 1}}']
)
def test_a_damaged_record_is_as_good_as_none(tmp_path: Path, wheel: Path, text: str) -> None:
    _, own = kept(tmp_path, wheel)
    about(tmp_path, own).write_text(text)
    assert BuiltStore(tmp_path / "store", "cp311-linux_x86_64").of_source("source") is None


@pytest.mark.parametrize("file", ["../../../secret", "SECRET", None])
def test_a_tampered_record_leads_nowhere(tmp_path: Path, wheel: Path, file: str | None) -> None:
    _, own = kept(tmp_path, wheel)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    record = about(tmp_path, own)
    tampered = {**json.loads(record.read_text()), "file": str(secret) if file == "SECRET" else file}
    record.write_text(json.dumps(tampered))
    assert BuiltStore(tmp_path / "store", "cp311-linux_x86_64").by_hash(own.sha256) is None


def test_what_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / "nothing.whl"
    path.write_text("x")
    with pytest.raises(EnvforgeError, match="no wheel"):
        kept(tmp_path, path)


def test_many_keep_one_wheel_at_once(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two commands do in a fresh cache, with the pip that comes with the Python."""
    both = threading.Barrier(2)
    copy = shutil.copyfile

    def copied(source: Path, target: Path) -> Path:
        done = copy(source, target)
        both.wait(20)
        return done

    monkeypatch.setattr(shutil, "copyfile", copied)
    failed: list[BaseException] = []

    def keep() -> None:
        try:
            kept(tmp_path, wheel)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=keep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
