"""Which GPUs a command sees, in child processes over a driver of the kit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from forge import small_home
from kit import cards
from kit.cards import A100_MIG, RTX_3090, V100_A, WORKSTATION, Driver

import envforge

SOURCE = str(Path(envforge.__file__).parent.parent)
GPU = '\ngpu: {compute_capability: "==7.0", memory_gib: ">=15"}\n'
SEEN = (
    "import os, json; print(json.dumps([os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ.get('CUDA_DEVICE_ORDER')]))"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``small`` wants a V100, ``free`` says nothing of cards, ``tied`` chooses for itself."""
    root = tmp_path_factory.mktemp("gpu") / "home"
    shop = small_home.shop(root)
    small_home.environment(shop, text=small_home.PROFILE + GPU)
    small_home.environment(shop, "free")
    tied = small_home.PROFILE.replace("{FROM_PROFILE:", '{CUDA_VISIBLE_DEVICES: "7", FROM_PROFILE:')
    small_home.environment(shop, "tied", text=tied + GPU)
    return root


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    made = cards.driver(tmp_path / "driver")
    made.put(*WORKSTATION)
    return made


def run(home: Path, driver: Driver, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    environment = {**known, "PYTHONPATH": SOURCE, "ENVFORGE_HOME": str(home), **driver.variables, **variables}
    return subprocess.run(
        [sys.executable, "-m", "envforge", "run", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def seen(done: subprocess.CompletedProcess[str]) -> tuple[str | None, str | None]:
    assert done.returncode == 0, done.stderr
    visible, order = json.loads(done.stdout)
    return visible, order


@pytest.mark.parametrize(
    ("gpu", "visible"),
    [
        ("0", "0"),
        ("2,1", "2,1"),
        ("V100", "1,2"),
        ("v100, 1", "1,2"),
        ("3090", "0"),
        ("GPU-v100b", "2"),
        (V100_A.uuid, "1"),
        ("all", "0,1,2"),
        ("V100,3090", "1,2,0"),
    ],
)
def test_cards_by_index_uuid_and_name(home: Path, driver: Driver, gpu: str, visible: str) -> None:
    done = run(home, driver, "--gpu", gpu, "free", "python", "-c", SEEN)
    assert seen(done) == (visible, "PCI_BUS_ID")
    assert done.stderr == ""


def test_none_hides_every_card_and_asks_nobody(home: Path, driver: Driver) -> None:
    driver.put(also=("crash",))
    done = run(home, driver, "--gpu", "none", "small", "python", "-c", SEEN, CUDA_VISIBLE_DEVICES="0")
    assert seen(done) == ("", None)
    assert done.stderr == ""


def test_without_a_word_every_card_that_fits(home: Path, driver: Driver) -> None:
    done = run(home, driver, "small", "python", "-c", SEEN)
    assert seen(done) == ("1,2", "PCI_BUS_ID")
    assert done.stderr == ""


def test_a_profile_for_no_card_in_particular_sets_nothing(home: Path, driver: Driver) -> None:
    driver.put(also=("crash",))
    assert seen(run(home, driver, "free", "python", "-c", SEEN)) == (None, None)


@pytest.mark.parametrize("before", ["0", "", "GPU-x"])
def test_what_the_user_has_set_stays_unless_asked_for(home: Path, driver: Driver, before: str) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": before}
    assert seen(run(home, driver, "small", "python", "-c", SEEN, **variables)) == (before, None)
    assert seen(run(home, driver, "--gpu", "1", "small", "python", "-c", SEEN, **variables))[0] == "1"


def test_what_the_profile_has_set_stays_too(home: Path, driver: Driver) -> None:
    assert seen(run(home, driver, "tied", "python", "-c", SEEN)) == ("7", None)
    assert seen(run(home, driver, "--gpu", "2", "tied", "python", "-c", SEEN))[0] == "2"


def test_the_option_may_stand_behind_the_environment(home: Path, driver: Driver) -> None:
    assert seen(run(home, driver, "free", "--gpu", "V100", "--", "python", "-c", SEEN))[0] == "1,2"
    assert seen(run(home, driver, "free", "--verbose", "--gpu=0", "python", "-c", SEEN, "--json"))[0] == "0"


@pytest.mark.parametrize("gpu", ["3", "1", "V10O", "GPU-0", "A100"])
def test_a_card_that_is_not_there(home: Path, driver: Driver, gpu: str) -> None:
    driver.put(RTX_3090)
    done = run(home, driver, "--json", "--gpu", gpu, "free", "echo", "ran")
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["message"]) == ("gpu-not-there", f"there is no GPU `{gpu}`")
    assert f"GPU 0 GeForce RTX 3090  {RTX_3090.uuid}" in error["cause"]


@pytest.mark.parametrize("gpu", ["", ",", "0,", "all,0", "none,1", "gpu-", "MIG-aaaa"])
def test_a_list_that_is_none(home: Path, driver: Driver, gpu: str) -> None:
    driver.put(*WORKSTATION, A100_MIG)
    done = run(home, driver, "--json", "--gpu", gpu, "free", "echo", "ran")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_a_card_that_does_not_fit_is_a_warning(home: Path, driver: Driver) -> None:
    done = run(home, driver, "--gpu", "all", "small", "python", "-c", SEEN)
    assert seen(done)[0] == "0,1,2"
    assert done.stderr == (
        "GPU 0 GeForce RTX 3090 does not fit `small`: compute capability 8.6, the profile wants ==7.0\n"
    )


@pytest.mark.parametrize(
    ("there", "also", "said"),
    [
        ((RTX_3090,), (), "compute capability 8.6, the profile wants ==7.0; the command sees all that are there\n"),
        ((), (), "no GPU was found"),
        ((), ("init 18",), "of different versions"),
    ],
)
def test_where_none_fits_the_command_starts_and_it_is_told(
    home: Path, driver: Driver, there: tuple[cards.Card, ...], also: tuple[str, ...], said: str
) -> None:
    driver.put(*there, also=also)
    done = run(home, driver, "small", "python", "-c", SEEN)
    assert seen(done) == (None, None)
    assert done.stderr.startswith("this machine does not fit `small`: ")
    assert said in done.stderr


@pytest.mark.slow
def test_parts_of_a_card_go_by_their_uuid(home: Path, driver: Driver) -> None:
    driver.put(A100_MIG, RTX_3090)
    assert seen(run(home, driver, "--gpu", "A100", "free", "python", "-c", SEEN))[0] == "MIG-aaaa0001,MIG-aaaa0002"
    assert seen(run(home, driver, "--gpu", "mig-aaaa0002", "free", "python", "-c", SEEN))[0] == "MIG-aaaa0002"
    mixed = run(home, driver, "--gpu", "1,MIG-aaaa0001", "free", "python", "-c", SEEN)
    assert seen(mixed)[0] == f"{RTX_3090.uuid},MIG-aaaa0001"


def test_a_divided_card_without_parts_cannot_be_used(home: Path, driver: Driver) -> None:
    driver.put(cards.Card(bus="0", uuid="GPU-a", name="A100", compute_capability="8.0", gib=40, mig=True))
    done = run(home, driver, "--json", "--gpu", "0", "free", "echo", "ran")
    assert done.returncode == 125
    assert "none of its parts is known" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.slow
def test_waiting_ends_when_the_cards_are_there(home: Path, driver: Driver) -> None:
    driver.put(RTX_3090)
    known = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    child = subprocess.Popen(
        [sys.executable, "-m", "envforge", "--verbose", "run", "--wait-gpu", "60", "small", "python", "-c", SEEN],
        env={**known, "PYTHONPATH": SOURCE, "ENVFORGE_HOME": str(home), **driver.variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert "waiting" in child.stderr.readline()
    driver.put(*WORKSTATION)
    out, _ = child.communicate(timeout=60)
    assert json.loads(out) == ["1,2", "PCI_BUS_ID"]


@pytest.mark.parametrize("words", [("small",), ("--gpu", "5", "free"), ("free",)])
def test_waiting_ends_when_the_time_is_over(home: Path, driver: Driver, words: tuple[str, ...]) -> None:
    driver.put()
    done = run(home, driver, "--json", "--wait-gpu", "0.2", *words, "echo", "ran")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "gpu-not-there"


@pytest.mark.parametrize("text", ["", "-1", "soon", "1e9", "nan"])
def test_a_time_that_is_none(home: Path, driver: Driver, text: str) -> None:
    done = run(home, driver, "--json", f"--wait-gpu={text}", "free", "echo", "ran")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "invalid-flag"


def test_waiting_leaves_to_the_user_what_is_the_users(home: Path, driver: Driver) -> None:
    done = run(home, driver, "--wait-gpu", "5", "small", "python", "-c", SEEN, CUDA_VISIBLE_DEVICES="2")
    assert seen(done) == ("2", None)
    assert seen(run(home, driver, "--wait-gpu", "5", "free", "python", "-c", SEEN)) == (None, None)


def test_socks_is_passed_as_socks5_and_told(home: Path, driver: Driver) -> None:
    proxies: Mapping[str, str] = {"ALL_PROXY": "socks://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    code = "import os; print(os.environ['ALL_PROXY'], os.environ['https_proxy'])"
    done = run(home, driver, "free", "python", "-c", code, **proxies)
    assert done.stdout == "socks5://127.0.0.1:9 http://127.0.0.1:9\n"
    assert done.stderr == (
        "`socks://`, which most libraries refuse, is passed as `socks5://` in $ALL_PROXY (proxy-scheme)\n"
    )
