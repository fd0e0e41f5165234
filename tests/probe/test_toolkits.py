from __future__ import annotations

from pathlib import Path

import pytest

from envforge.probe import ambient, toolkits


def put(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_each_toolkit_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / "usual"
    new = put(usual / "cuda-12.4", "version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}')
    (usual / "cuda").symlink_to(new)
    old = put(usual / "cuda-10.2", "version.txt", "CUDA Version 10.2.89\n")
    mine = put(tmp_path / "mine", "include/cuda.h", "#define CUDA_VERSION 11080\n")
    monkeypatch.setenv("CUDA_HOME", str(mine))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "gone"))
    found = [(each.path, each.version, each.how) for each in toolkits.look(usual)]
    assert found == [
        (str(mine), "11.8", "CUDA_HOME"),
        (str(new), "12.4.1", "usual"),
        (str(old), "10.2.89", "usual"),
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"cuda": 3}', '{"cuda": {"version": 3}}', "{"])
def test_a_toolkit_that_does_not_tell_its_version(tmp_path: Path, text: str) -> None:
    assert toolkits.version(put(tmp_path / "cuda", "version.json", text)) is None


def test_proxies_are_told_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", "http://who:secret@127.0.0.1:7890")
    monkeypatch.setenv("HTTP_PROXY", "who:secret@127.0.0.1:7891")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert [(each.variable, each.url) for each in ambient.proxies()] == [
        ("HTTP_PROXY", "http://127.0.0.1:7891"),
        ("https_proxy", "http://127.0.0.1:7890"),
    ]
