"""`inspect` and what is remembered of compiled files, through the command line on real environments."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from forge.by_hand import made
from kit.check import ended, errors
from kit.cli import Cli
from kit.elf import Elf
from kit.index import Index, serve
from kit.wheels import Wheel

KERNELS = Wheel(
    name="kernels",
    version="1.0.0",
    files={
        "kernels/_C.abi3.so": Elf(needs=("libc.so.6",), offers=("PyInit__C",), code=("sm_70", "sm_80")).bytes(),
        "kernels/_fa2.so": Elf(needs=("libabsent.so.1",), code=("sm_80", "ptx_80")).bytes(),
        "kernels/plain.so": Elf(needs=("libc.so.6",), wants=("printf",)).bytes(),
    },
)
SIX = Wheel(name="six", version="1.0.0")


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    with serve({"pypi": Index(artefacts=[KERNELS, SIX])}) as server:
        cli = Cli(root=tmp_path)
        gpu = {"compute_capability": "==7.0"}
        cli.profile(server.url("pypi"), [{"name": "all", "install": ["kernels", "six"]}], gpu=gpu)
        ended(cli.run("create", "demo", "--any-machine"))
        yield cli


def machine(cli: Cli, capability: str) -> str:
    """The file of a machine with one card."""
    ended(cli.run("machine", "--save", "machine.json"))
    path = cli.work / "machine.json"
    card = {
        "index": 0, "uuid": "GPU-0", "name": "a card", "compute_capability": capability, "memory": 1 << 34,
        "pci_bus": None, "mig": False,
    }  # fmt: skip
    path.write_text(json.dumps(json.loads(path.read_text()) | {"gpus_status": "found", "gpus": [card]}))
    return "machine.json"


def test_an_environment_is_told_by_distribution(cli: Cli) -> None:
    answer = ended(cli.run("inspect", "demo"))

    assert (answer.data["subject"], answer.data["kind"], answer.data["cards"]) == ("demo", "environment", ["7.0"])
    (kernels,) = answer.data["distributions"]
    assert kernels == {
        "name": "kernels",
        "version": "1.0.0",
        "objects": 3,
        "code": ["sm_70", "sm_80", "ptx_80"],
        "fits": ["7.0"],
        "files": [
            {"path": "kernels/_C.abi3.so", "code": ["sm_70", "sm_80"], "trouble": None},
            {"path": "kernels/_fa2.so", "code": ["sm_80", "ptx_80"], "trouble": None},
        ],
    }
    told = {(each["id"], each["subject"], each["severity"]) for each in answer.document["findings"]}
    assert told == {("arch-unsupported", "kernels", "info"), ("library-missing", "kernels/_fa2.so", "warning")}


def test_a_folder_of_the_home_is_the_environment_that_it_belongs_to(cli: Cli) -> None:
    answer = ended(cli.run("inspect", str(cli.link().resolve())))

    assert (answer.data["subject"], answer.data["cards"]) == ("demo", ["7.0"])


def test_an_environment_that_envforge_did_not_build_is_judged_for_the_cards_of_a_machine(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path / "cli")
    made(tmp_path / "old", KERNELS)
    answer = ended(cli.run("inspect", str(tmp_path / "old")))
    assert (answer.data["cards"], answer.data["distributions"][0]["fits"]) == ([], [])

    answer = ended(cli.run("inspect", str(tmp_path / "old"), "--machine", machine(cli, "9.0")))
    assert (answer.data["cards"], answer.data["distributions"][0]["fits"]) == (["9.0"], ["9.0"])
    answer = ended(cli.run("inspect", str(tmp_path / "old"), "--machine", machine(cli, "6.1")))
    (finding,) = (each for each in answer.document["findings"] if each["id"] == "arch-unsupported")
    assert (finding["severity"], finding["evidence"]["cards"]) == ("warning", ["6.1"])


def test_a_wheel_and_a_single_file_need_no_environment(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    wheel = tmp_path / KERNELS.filename
    wheel.write_bytes(KERNELS.bytes())
    file = tmp_path / "one.so"
    file.write_bytes(Elf(code=("sm_90a",)).bytes())

    answer = ended(cli.run("inspect", str(wheel), "--machine", machine(cli, "8.6")))
    (kernels,) = answer.data["distributions"]
    assert (answer.data["kind"], kernels["name"], kernels["objects"], kernels["fits"]) == (
        "wheel",
        "kernels",
        3,
        ["8.6"],
    )
    answer = ended(cli.run("inspect", str(file)))
    assert (answer.data["kind"], answer.data["distributions"][0]["code"]) == ("file", ["sm_90a"])


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("kernels-1.0.0-py3-none-any.whl", b"no zip", "bad-wheel"),
        ("kernels-1.0.0-py3-none-any.whl", KERNELS.bytes()[:400], "bad-wheel"),
        ("kernels.whl", KERNELS.bytes(), "not-an-environment"),
        ("notes.txt", b"nothing", "not-an-environment"),
    ],
)
def test_what_is_none_of_these_is_refused(tmp_path: Path, name: str, data: bytes, code: str) -> None:
    cli = Cli(root=tmp_path)
    (tmp_path / name).write_bytes(data)
    answer = cli.run("inspect", str(tmp_path / name))

    assert answer.exit in {1, 2}
    assert answer.document["error"]["code"] == code


def test_a_damaged_wheel_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    data = bytearray(KERNELS.bytes())
    at = data.index(b"kernels/_C.abi3.so") + 30
    data[at : at + 20] = bytes(20)
    (tmp_path / KERNELS.filename).write_bytes(data)

    assert cli.run("inspect", str(tmp_path / KERNELS.filename)).document["error"]["code"] == "bad-wheel"
    assert not list((cli.home / "cache/scratch").glob("*"))


def test_a_name_that_is_nothing_is_an_error(tmp_path: Path) -> None:
    assert Cli(root=tmp_path).run("inspect", "nothing").document["error"]["code"] == "no-such-environment"


@pytest.mark.slow
def test_what_was_found_is_kept_and_looked_at_again_where_a_file_is_another(cli: Cli) -> None:
    kept = cli.home / "records/demo/1/native.json"
    before = kept.read_bytes()
    ended(cli.run("audit", "demo"))
    assert kept.read_bytes() == before

    # What is drift is told of the file as it lies there, and not remembered.
    (cli.site() / "kernels/_C.abi3.so").write_bytes(Elf(wants=("gone",), offers=("PyInit__C",)).bytes())
    answer = ended(cli.run("audit", "demo"), 3)
    assert {"symbol-undefined", "file-modified"} <= {id_ for id_, _ in errors(answer)}
    ended(cli.run("repair", "demo"))
    assert errors(ended(cli.run("audit", "demo"))) == set()


@pytest.mark.parametrize("lost", ["records/demo/1/native.json", "cache/elf"])
def test_without_what_is_kept_the_same_is_found(cli: Cli, lost: str) -> None:
    def found() -> list[tuple[str, str]]:
        return [(each["id"], each["subject"]) for each in ended(cli.run("inspect", "demo")).document["findings"]]

    before = found()
    place = cli.home / lost
    shutil.rmtree(place) if place.is_dir() else place.unlink()

    assert found() == before
    assert (cli.home / "records/demo/1/native.json").exists()


def test_another_generation_reads_no_file_again_that_is_known(cli: Cli) -> None:
    table = next((cli.home / "cache/elf").iterdir())
    before = table.read_bytes()
    ended(cli.run("create", "demo", "--replace", "--any-machine"))

    assert table.read_bytes() == before
