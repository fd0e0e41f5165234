from __future__ import annotations

import os
from pathlib import Path

import pytest

from envforge.model.machine import Ambient
from envforge.probe import ambient

HIDDEN = "hunter2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose environment and home say nothing."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "CONDA", "PYTHON", "LD_", "XDG_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    return tmp_path


def of_user(home: Path) -> list[Ambient]:
    """What was found, without the files that this host has for all its users."""
    return [item for item in ambient.look() if item.source.startswith(("$", str(home)))]


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_a_silent_host_says_nothing(home: Path) -> None:
    assert of_user(home) == []
    assert ambient.user_site() is None


def test_the_files_of_pip_in_its_order(home: Path) -> None:
    text = f"[global]\nindex-url = https://u:{HIDDEN}@x/%20\nextra-index-url =\n  a\n  b\n[install]\nno-deps = yes\n"
    system = write(home / "etc" / "pip" / "pip.conf", text)
    old = write(home / ".pip" / "pip.conf", text)
    user = write(home / ".config" / "pip" / "pip.conf", "")
    found = of_user(home)
    assert [item.source for item in found] == [system, old]
    assert found[0].settings == ("global.index-url", "global.extra-index-url", "install.no-deps")
    assert HIDDEN not in repr(found)
    write(Path(user), "no ini")
    assert of_user(home)[2] == Ambient(tool="pip", source=user)


def test_a_named_file_replaces_the_users_and_dev_null_all(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / ".config" / "pip" / "pip.conf", "[global]\npre = yes\n")
    system = write(home / "etc" / "pip" / "pip.conf", "[global]\npre = yes\n")
    named = write(home / "named.conf", "[global]\nno-index = yes\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", named)
    assert [item.source for item in of_user(home)] == [system, named]
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert [item for item in ambient.look() if item.tool == "pip"] == []


def test_variables_by_name_without_value(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "UV_INDEX", "CONDA_CHANNELS", "PYTHONPATH", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, HIDDEN)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("CONDA_PREFIX", "/opt/conda")
    found = of_user(home)
    assert [(item.tool, item.source) for item in found] == [
        ("pip", "$PIP_INDEX_URL"),
        ("uv", "$UV_INDEX"),
        ("conda", "$CONDA_CHANNELS"),
        ("python", "$PYTHONPATH"),
        ("linker", "$LD_LIBRARY_PATH"),
    ]
    assert found[0].settings == ("index-url",)
    assert HIDDEN not in repr(found)


def test_the_files_of_uv_and_conda(home: Path) -> None:
    uv = write(home / ".config" / "uv" / "uv.toml", f'index-url = "https://{HIDDEN}@x"\n[pip]\nx = 1\n')
    conda = write(home / ".condarc", f"channels:\n  - https://{HIDDEN}@x\n# a: b\nssl_verify: false\n")
    found = {item.source: item for item in of_user(home)}
    assert found[uv] == Ambient(tool="uv", source=uv, settings=("index-url", "pip"))
    assert found[conda] == Ambient(tool="conda", source=conda, settings=("channels", "ssl_verify"))
    write(Path(uv), "= broken")
    assert Ambient(tool="uv", source=uv) in of_user(home)


def test_only_the_bare_socks_scheme_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"socks://u:{HIDDEN}@127.0.0.1:1080")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    assert of_user(home) == [Ambient(tool="proxy", source="$ALL_PROXY", settings=("socks",))]


def test_the_newest_user_site_that_holds_something(home: Path) -> None:
    for version in ("3.9", "3.10", "3.11"):
        (home / ".local" / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    assert ambient.user_site() is None
    for version in ("3.9", "3.10"):
        write(home / ".local" / "lib" / f"python{version}" / "site-packages" / "x.py", "")
    assert ambient.user_site() == str(home / ".local" / "lib" / "python3.10" / "site-packages")
