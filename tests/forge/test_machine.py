from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forge import small_home

from envforge.forge.machine import load, machine
from envforge.model.errors import EnvforgeError, UsageError


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    found = machine(small_home.shop(tmp_path), save=file).data
    assert load(file) == found
    assert (found.system, found.architecture) == ("Linux", os.uname().machine)
    assert found.pythons
    assert found.disk_free > 0


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EnvforgeError) as caught:
        machine(small_home.shop(tmp_path), save=tmp_path / "no" / "folder.json")
    assert caught.value.code == "not-writable"


def plain() -> dict[str, Any]:
    return {
        "schema": 1, "system": "Linux", "architecture": "x86_64", "glibc": "2.36", "hostname": "elsewhere",
        "gpus_status": "absent", "gpus": [], "driver": None, "cuda": None, "disk_free": 10**11,
        "pythons": [], "ambient": [], "user_site": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "one"}, "schema"),
        ({"schema": 3}, "newer"),
        ({"gpus": [{"index": 0}]}, "`uuid` is missing"),
        ({"gpus": 3}, "`gpus` is no list"),
        ({"disk_free": "much"}, "disk_free` is no int"),
        ({"driver": 550.54}, "driver` is no str"),
        ({"system": None}, "system` is no str"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({**plain(), **change}), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(file)
    assert said in f"{caught.value.message} {caught.value.cause}"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_json(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "machine.json"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(file)
    assert caught.value.code == "invalid-machine"
