from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.wheels import Wheel
from packaging.pylock import Pylock, is_valid_pylock_path

from envforge.model.state import Distribution, Origin, State
from envforge.store.layout import Home
from envforge.store.pylock import render
from envforge.store.snapshots import lock_path

SHA = "ab" * 32
UV = Path(sys.executable).parent / "uv"


def a_distribution(name: str = "torch", **fields: object) -> Distribution:
    whole: dict[str, object] = {
        "name": name,
        "version": "2.7.1+cu126",
        "index": "torch-cu126",
        "file": f"{name}-2.7.1+cu126-cp310-cp310-manylinux_2_28_x86_64.whl",
        "sha256": SHA,
        "size": 7,
    }
    return Distribution(**{**whole, **fields})  # type: ignore[arg-type]


def locked(
    *dists: Distribution, indexes: dict[str, str | None] | None = None, built: dict[str, str] | None = None
) -> str:
    state = {dist.name: dist for dist in dists}
    return render(state, python="3.10.13", indexes=indexes or {}, built=built or {})


def only_package(text: str) -> Pylock:
    lock = Pylock.from_dict(tomllib.loads(text))
    lock.validate()
    return lock


def test_what_a_lock_names() -> None:
    text = locked(
        a_distribution(url="https://u:p@files.example/t.whl?token=1#x"),
        indexes={"torch-cu126": "https://u:p@simple.example/cu126"},
    )
    data = tomllib.loads(text)
    assert data["lock-version"] == "1.0"
    assert data["created-by"] == "envforge"
    assert data["requires-python"] == "==3.10.*"
    assert data["environments"] == ["platform_machine == 'x86_64' and sys_platform == 'linux'"]
    assert data["packages"] == [
        {
            "name": "torch",
            "version": "2.7.1+cu126",
            "index": "https://simple.example/cu126",
            "wheels": [
                {
                    "name": "torch-2.7.1+cu126-cp310-cp310-manylinux_2_28_x86_64.whl",
                    "url": "https://files.example/t.whl",
                    "size": 7,
                    "hashes": {"sha256": SHA},
                }
            ],
        }
    ]
    only_package(text)


def test_no_credentials_anywhere() -> None:
    origin = Origin(kind="git", url="https://user:secret@git.example/x.git?secret#secret", commit="c0ffee")
    dist = a_distribution(url="https://user:secret@files.example/t.whl?sig=secret", origin=origin)
    text = locked(dist, indexes={"torch-cu126": "https://user:secret@simple.example/?secret"})
    assert "secret" not in text
    assert "git.example/x.git" in text


def test_an_index_without_url_is_left_out_and_the_file_expected_beside_the_lock() -> None:
    text = locked(a_distribution(index="pypi"), indexes={"pypi": None})
    (package,) = only_package(text).packages
    assert package.index is None
    assert package.wheels is not None
    assert package.wheels[0].path == "torch-2.7.1+cu126-cp310-cp310-manylinux_2_28_x86_64.whl"


def test_a_built_wheel_is_locked_by_its_place_in_the_store_with_its_origin() -> None:
    dist = a_distribution(origin=Origin(kind="sdist", url="https://f.example/t.tar.gz", sha256="cd" * 32))
    for place, key in (("/store/t.whl", "path"), ("file:///store/t.whl", "url")):
        text = locked(dist, indexes={"torch-cu126": "https://simple.example"}, built={SHA: place})
        (package,) = tomllib.loads(text)["packages"]
        assert package["wheels"][0][key] == place
        assert package["tool"]["envforge"]["origin"]["kind"] == "sdist"
        assert "index" not in package
        only_package(text)


def test_what_cannot_be_restored_is_named() -> None:
    text = locked(a_distribution(file=None, sha256=None))
    assert tomllib.loads(text)["tool"]["envforge"]["unlocked"] == ["torch==2.7.1+cu126"]
    assert only_package(text).packages == []


def test_wheels_for_any_machine_bind_the_lock_to_none() -> None:
    assert "environments" not in tomllib.loads(locked(a_distribution(file="torch-2.7.1-py3-none-any.whl")))


def test_the_order_of_the_state_does_not_matter() -> None:
    one, two = a_distribution("b"), a_distribution("a")
    assert locked(one, two) == locked(two, one)


names = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,3})?", fullmatch=True)
anything = st.text(max_size=15)


@given(
    st.dictionaries(
        names,
        st.tuples(
            st.integers(0, 99), st.none() | st.just("https://f.example/"), anything, st.booleans(), st.none() | anything
        ),
        max_size=4,
    )
)
@settings(max_examples=80)
def test_any_state_gives_a_valid_lock(raw: dict[str, tuple[int, str | None, str, bool, str | None]]) -> None:
    state: State = {
        name: Distribution(
            name=name,
            version=f"{number}.0",
            file=f"{name.replace('-', '_')}-{number}.0-py3-none-any.whl" if known else None,
            sha256=SHA if known else None,
            url=url,
            origin=Origin(kind="path", url=odd, commit=commit),
        )
        for name, (number, url, odd, known, commit) in raw.items()
    }
    text = render(state, python="3.12", indexes={}, built={SHA: "/store/\t\"'\\ é.whl"})
    lock = only_package(text)
    assert [str(package.name) for package in lock.packages] == sorted(name for name, value in raw.items() if value[3])


@given(anything)
def test_any_text_survives_toml(text: str) -> None:
    dist = a_distribution(origin=Origin(kind="path", commit=text))
    (package,) = tomllib.loads(locked(dist))["packages"]
    assert package["tool"]["envforge"]["origin"]["commit"] == text


def test_the_lock_of_a_snapshot_has_a_standard_name(tmp_path: Path) -> None:
    assert is_valid_pylock_path(lock_path(Home(tmp_path, tmp_path), "x", 1, 3))


@pytest.mark.parametrize("how", ["path", "file-url", "beside"])
def test_uv_restores_from_it(tmp_path: Path, how: str) -> None:
    wheel = Wheel(name="tiny", version="1.0+cu126", build="2")
    data = wheel.bytes()
    store = tmp_path / "a store"
    store.mkdir()
    lock = lock_path(Home(tmp_path, tmp_path), "x", 1, 3)
    lock.parent.mkdir(parents=True)
    place = store if how != "beside" else lock.parent
    (place / wheel.filename).write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    dist = Distribution(name="tiny", version="1.0+cu126", file=wheel.filename, sha256=sha256, size=len(data))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    built = {
        "path": {sha256: str(store / wheel.filename)},
        "file-url": {sha256: (store / wheel.filename).as_uri()},
        "beside": {},
    }[how]
    lock.write_text(render({"tiny": dist}, python=python, indexes={}, built=built))
    installed = restore(lock, tmp_path)
    assert installed == [{"name": "tiny", "version": "1.0+cu126"}]
    lock.write_text(lock.read_text().replace(sha256, SHA))
    with pytest.raises(subprocess.CalledProcessError):
        restore(lock, tmp_path)


def restore(lock: Path, tmp_path: Path) -> list[dict[str, str]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    env |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_OFFLINE": "1", "UV_NO_CONFIG": "1", "UV_LINK_MODE": "copy"}
    venv = tmp_path / "venv"
    subprocess.run([UV, "venv", "-q", "--clear", "-p", sys.executable, venv], check=True, env=env)
    python = venv / "bin" / "python"
    subprocess.run([UV, "pip", "install", "-q", "-p", python, "-r", lock], check=True, env=env)
    listed = subprocess.run(
        [UV, "pip", "list", "-p", python, "--format", "json"], check=True, env=env, capture_output=True, text=True
    )
    found: list[dict[str, str]] = json.loads(listed.stdout)
    return found
