from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envforge.model.errors import UsageError
from envforge.model.machine import Ambient, Asked, Card, Interpreter, Machine, Proxy, Slice, Toolkit
from envforge.probe import machine

WHOLE = Machine(
    system="Linux",
    architecture="x86_64",
    glibc="2.36",
    hostname="box",
    gpus_status="found",
    gpus=(
        Card(index=0, uuid="GPU-1", name="V100", compute_capability="7.0", memory=34359738368, pci_bus="0:1"),
        Card(
            index=1,
            uuid="GPU-2",
            name="A100",
            compute_capability="8.0",
            memory=42949672960,
            mig=True,
            slices=(Slice(uuid="MIG-1", profile="3g.20gb", memory=20937965568), Slice(uuid="MIG-2")),
        ),
    ),
    asked=(Asked(who="NVML", status="failed: no"), Asked(who="nvidia-smi", status="found")),
    driver="550.54",
    cuda="12.4",
    toolkits=(Toolkit(path="/usr/local/cuda-12.4", version="12.4.1", how="usual"),),
    disk_free=7,
    pythons=(Interpreter(path="/usr/bin/python3", version="3.11.2", how="PATH"),),
    ambient=(Ambient(tool="pip", source="/etc/pip.conf", settings=("global.index-url",)),),
    proxies=(Proxy(variable="https_proxy", url="http://127.0.0.1:7890"),),
)


def test_this_machine_survives_a_file(tmp_path: Path) -> None:
    seen = machine.look(tmp_path / "not" / "there")
    assert seen.system == "Linux"
    assert seen.disk_free > 0
    assert seen.pythons
    assert machine.loads(machine.dumps(seen), "file") == seen


texts = st.text(max_size=8)


@given(
    st.builds(
        Machine,
        system=texts,
        architecture=texts,
        glibc=st.none() | texts,
        hostname=texts,
        gpus_status=texts,
        gpus=st.just(WHOLE.gpus),
        asked=st.just(WHOLE.asked),
        toolkits=st.just(WHOLE.toolkits),
        proxies=st.just(WHOLE.proxies),
        disk_free=st.integers(0),
        ambient=st.lists(st.builds(Ambient, tool=texts, source=texts, settings=st.just(("a",))), max_size=2).map(tuple),
    )
)
def test_any_machine_survives_a_file(whole: Machine) -> None:
    assert machine.loads(machine.dumps(whole), "file") == whole


def test_what_has_a_default_may_be_left_out() -> None:
    data = {
        "schema": 1,
        "system": "Linux",
        "architecture": "x86_64",
        "glibc": None,
        "hostname": "",
        "gpus_status": "absent",
    }
    text = json.dumps(data)
    assert machine.loads(text, "file").gpus == ()


def test_a_file_of_before_parts_of_cards_were_told() -> None:
    data = json.loads(machine.dumps(WHOLE))
    for name in ("asked", "toolkits", "proxies"):
        del data[name]
    del data["gpus"][0]["slices"]
    data["gpus"] = data["gpus"][:1]
    read = machine.loads(json.dumps({**data, "schema": 1}), "file")
    assert (read.gpus, read.asked, read.toolkits, read.proxies) == (WHOLE.gpus[:1], (), (), ())


def test_a_newer_file_is_told() -> None:
    with pytest.raises(UsageError, match="newer") as caught:
        machine.loads(f'{{"schema": {machine.MACHINE_SCHEMA + 1}}}', "box.json")
    assert caught.value.code == "newer-record"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hostname": 3}, "the machine.hostname"),
        ({"disk_free": "7"}, "the machine.disk_free"),
        ({"disk_free": True}, "the machine.disk_free"),
        ({"gpu": []}, "`gpu` is no field"),
        ({"gpus": {}}, "`gpus` is no list"),
        ({"gpus": [{}]}, "missing in `gpus`"),
        ({"gpus": [3]}, "`gpus` is no object"),
        ({"gpus": [{**json.loads(machine.dumps(WHOLE))["gpus"][0], "slices": [{}]}]}, "missing in `gpus.slices`"),
        ({"proxies": [{"variable": "x"}]}, "missing in `proxies`"),
        ({"ambient": [{"tool": "pip", "source": "x", "settings": "abc"}]}, "settings"),
        ({"schema": "1"}, "schema"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], why: str) -> None:
    text = json.dumps({**json.loads(machine.dumps(WHOLE)), **change})
    with pytest.raises(UsageError, match=r"box\.json") as caught:
        machine.loads(text, "box.json")
    assert caught.value.code == "invalid-machine"
    assert caught.value.cause is not None
    assert why in caught.value.cause


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"schema": 1}'])
def test_what_is_no_machine_is_told(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        machine.loads(text, "box.json")
    assert caught.value.code == "invalid-machine"
