"""What ships: it loads, says why, and holds what the checked facts say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from envforge.model.profile import Action, Hold, Keep, Profile, SmokeKind, Symbol
from envforge.profiles import loader, lookup, schema


def shipped(name: str) -> Profile:
    return loader.load(lookup.shipped("profiles") / f"{name}.yaml")


def hold(profile: Profile) -> Hold:
    [found] = [guard for guard in profile.guards if isinstance(guard, Hold)]
    return found


def test_the_names() -> None:
    assert sorted(path.stem for path in lookup.shipped("profiles").glob("*.yaml")) == ["quickstart", "xin", "xinv100"]
    assert sorted(path.stem for path in lookup.shipped("recipes").glob("*.yaml")) == ["torch", "vllm", "xinference"]


@pytest.mark.parametrize("kind", ["profiles", "recipes"])
def test_every_file_says_its_schema_and_its_own_name(kind: str) -> None:
    for path in lookup.shipped(kind).glob("*.yaml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first == f"# yaml-language-server: $schema={kind.removesuffix('s')}.schema.json"
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["name"] == path.stem


@pytest.mark.parametrize("kind", ["profile", "recipe"])
def test_the_schema_is_current(kind: str) -> None:
    path = schema.paths()[kind]
    assert path.read_text(encoding="utf-8") == schema.render(kind), "run `python -m envforge.profiles.schema`"


@pytest.mark.parametrize("name", ["xin", "xinv100"])
def test_the_main_profiles(name: str) -> None:
    profile = shipped(name)
    assert [step.action for step in profile.steps] == [Action.INSTALL, Action.BACKFILL, Action.INSTALL, Action.PIN]
    assert [guard.names for guard in profile.guards if isinstance(guard, Keep)] == [
        ("torch", "torchvision", "torchaudio")
    ]
    assert hold(profile).constrain
    # The pin at the end says what the hold says, so it has nothing to do while the hold constrains.
    assert profile.steps[-1].arguments == (hold(profile).requirement,)
    assert all(guard.because and guard.reference for guard in profile.guards)
    backfill = {Requirement(text).name for text in profile.steps[1].arguments}
    assert not backfill & {"tokenizers", "pyside6"}
    assert profile.environment == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "XINFERENCE_ENABLE_VIRTUAL_ENV": "0"}
    assert not any("+" in text for step in profile.steps for text in step.arguments)


def test_the_bounds_of_transformers() -> None:
    old, new = (Requirement(hold(shipped(name)).requirement).specifier for name in ("xinv100", "xin"))
    assert [version for version in ("4.53.2", "4.57.6", "5.0.0", "5.20.2") if old.contains(version)] == ["4.57.6"]
    assert [version for version in ("4.55.0", "4.57.6", "5.0.0", "5.5.0", "5.15.1") if new.contains(version)] == [
        "4.57.6",
        "5.15.1",
    ]


def test_only_xin_needs_the_symbol() -> None:
    assert [guard.symbol for guard in shipped("xin").guards if isinstance(guard, Symbol)] == [
        "ncclCommWindowDeregister"
    ]
    assert not [guard for guard in shipped("xinv100").guards if isinstance(guard, Symbol)]


def test_what_recipes_know_of_cards_becomes_part_of_the_profile() -> None:
    known = {(each.name, each.version): each for each in shipped("xinv100").releases}

    assert known["vllm", "0.10.0"].essential == ("_C.abi3.so",)
    assert known["vllm", "0.10.0"].compute_capability == (">=7.0",)
    assert known["vllm", "0.20.0"].compute_capability == (">=7.5",)
    assert ("torch", "2.7.1") not in known  # nothing is known of it that concerns cards


@pytest.mark.parametrize("name", ["xin", "xinv100"])
def test_the_probe_writes_nothing_outside_its_folder(name: str, tmp_path: Path) -> None:
    """Run for real against stand-ins of tokenizers and vllm that write where vLLM and its like would."""
    [probe] = [smoke for smoke in shipped(name).smoke if smoke.name == "vllm loads a tokenizer"]
    assert probe.kind is SmokeKind.PYTHON
    modules = tmp_path / "modules"
    (modules / "vllm" / "transformers_utils").mkdir(parents=True)
    (modules / "tokenizers.py").write_text(TOKENIZERS, encoding="utf-8")
    (modules / "vllm" / "__init__.py").touch()
    (modules / "vllm" / "transformers_utils" / "__init__.py").touch()
    where = "transformers_utils/tokenizer.py" if name == "xinv100" else "tokenizers.py"
    (modules / "vllm" / where).write_text(VLLM, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", probe.arguments[0]],
        env={"PYTHONPATH": str(modules), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "loaded Loaded, 3 tokens\n"
    assert sorted(tmp_path.rglob("*")) == before


TOKENIZERS = """\
class Anything:
    def __init__(self, *given, **named): self.model = given[0] if given else None
    def __getattr__(self, name): return Anything
    def __call__(self, *given, **named): return Anything()
    @staticmethod
    def alphabet(): return []
    def train_from_iterator(self, texts, trainer): pass
    def save(self, path): pass
decoders = models = pre_tokenizers = trainers = Anything()
Tokenizer = Anything
Anything.ByteLevel = Anything
"""

VLLM = """\
import json, os, pathlib
def get_tokenizer(folder):
    for name in ("config.json", "tokenizer_config.json"):
        json.loads(pathlib.Path(folder, name).read_text())
    pathlib.Path(os.path.expanduser("~"), ".written").touch()
    pathlib.Path(os.environ["HF_HOME"], "hub").mkdir()
    return Loaded()
class Loaded:
    def __len__(self): return 3
    def encode(self, text): return text
    def decode(self, text): return text
"""


def test_quickstart_runs_on_every_python_of_ours() -> None:
    profile = shipped("quickstart")
    assert profile.python == ">=3.11"
    assert profile.gpu is None
    assert not any(guard.constrain for guard in profile.guards if isinstance(guard, Hold))
