"""Smoke checks: children that end, crash, hang, or were never there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from forge import small_home

from envforge.forge import generating, proof
from envforge.model.profile import Device, Generate, Generator, Profile, Smoke, SmokeKind
from envforge.model.smoked import SmokeResult


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    binaries = tmp_path / "prefix/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    return binaries.parent


def check(
    prefix: Path, kind: SmokeKind, *arguments: str, timeout: float = 60.0, device: Device | None = None
) -> SmokeResult:
    one = Smoke(kind=kind, arguments=arguments, name="it", timeout=timeout, device=device)
    profile = Profile(name="demo", source="", text="", smoke=(one,), environment={"MINE": "yes"})
    (result,) = proof.run(small_home.shop(prefix / "home"), prefix, profile, prefix / "log").results
    found = proof.findings((result,))
    assert bool(found) is not result.ok
    return result


def test_what_works(prefix: Path) -> None:
    assert check(prefix, SmokeKind.IMPORT, "json", "os.path").ok
    assert check(prefix, SmokeKind.PYTHON, "import os\nassert os.environ['MINE'] == 'yes'").ok
    assert check(prefix, SmokeKind.COMMAND, "python", "-c", "print('said')").ok
    assert "said" in (prefix / "log").read_text()


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("import os; os.abort()", "killed by SIGABRT"),
        ("import os; os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("1/0", "exit status 1"),
    ],
)
def test_what_does_not(prefix: Path, code: str, ending: str) -> None:
    result = check(prefix, SmokeKind.PYTHON, code)
    assert (result.ok, result.ending) == (False, ending)
    (finding,) = proof.findings((result,))
    assert (finding.id, finding.subject, finding.evidence["ending"]) == ("smoke-failed", "it", ending)


def test_a_module_that_is_absent(prefix: Path) -> None:
    result = check(prefix, SmokeKind.IMPORT, "json", "no_such_module")
    assert "no_such_module" in result.tail


def test_one_that_hangs(prefix: Path) -> None:
    result = check(prefix, SmokeKind.PYTHON, "print('here', flush=True)\nimport time; time.sleep(60)", timeout=1.0)
    assert (result.ok, result.ending, result.tail) == (False, "ended after its time limit", "here")


def test_a_program_that_is_absent(prefix: Path) -> None:
    result = check(prefix, SmokeKind.COMMAND, "no-such-program")
    assert (result.ok, "no-such-program" in result.ending) == (False, True)


def test_a_program_that_is_broken(prefix: Path) -> None:
    broken = prefix / "bin/broken"
    broken.write_text("#!/nonexistent/python\n")
    broken.chmod(0o755)
    assert not check(prefix, SmokeKind.COMMAND, "broken").ok


@pytest.mark.parametrize("kind", [SmokeKind.IMPORT, SmokeKind.PYTHON])
def test_the_working_folder_is_not_what_is_proven(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SmokeKind
) -> None:
    """As when the profile of vllm is built from within a checkout of vllm, or any folder that holds a `json.py`."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "vllm.py").write_text("")
    monkeypatch.chdir(folder)
    assert not check(prefix, kind, "vllm" if kind is SmokeKind.IMPORT else "import vllm").ok


def test_one_for_the_cpu_sees_no_card(prefix: Path) -> None:
    code = "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == ''"
    assert check(prefix, SmokeKind.PYTHON, code, device=Device.CPU).ok
    assert not check(prefix, SmokeKind.PYTHON, code).ok


def test_a_hub_is_reached_by_the_proxy_and_only_for_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    online = small_home.shop(tmp_path).settings
    named = Generate(engine=Generator.TRANSFORMERS, model="owner/name", prompt="x")
    asked = generating.variables(named, online)
    assert (asked["https_proxy"], "HF_HUB_OFFLINE" in asked) == ("http://127.0.0.1:9", False)
    for closed in (
        generating.variables(named, replace(online, offline=True)),
        generating.variables(replace(named, model="/models/small"), online),
    ):
        assert (closed["HF_HUB_OFFLINE"], "https_proxy" in closed) == ("1", False)
