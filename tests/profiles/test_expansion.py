"""Recipes, parameters, and profiles that extend others."""

from __future__ import annotations

from pathlib import Path

import pytest

from envforge.model.errors import InvalidFileError
from envforge.model.profile import Forbid, Hold, Hub, Index, Keep, Model, Profile, SmokeKind, Symbol
from envforge.profiles import loader

RECIPE = """\
schema: 1
name: thing
summary: a thing
parameters:
  version: {description: the release}
  range: {default: "<2", description: the range}
steps:
- {name: thing, install: ["thing==${version}"], environment: {V: "${version}"}}
- {name: after, backfill: [other]}
guards:
- {hold: "other${range}", because: "thing ${version} wants it, $${kept} and ${Kept} stay"}
ignore: [leftover]
smoke:
- {import: [thing]}
environment: {THING: "1"}
releases:
- {version: "1.0", requires: ["other<2"], compute_capability: ">=7.0", reference: METADATA, checked: by hand}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        kind, _, stem = name.partition("_")
        path = folder / f"{kind}s" / f"{stem}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def load(folder: Path, name: str) -> Profile:
    return loader.load(folder / "profiles" / f"{name}.yaml", cwd=folder, config=folder / "none")


def messages(folder: Path, name: str) -> list[str]:
    with pytest.raises(InvalidFileError) as caught:
        load(folder, name)
    return [str(mistake).removeprefix(f"{folder}/") for mistake in caught.value.mistakes]


def test_a_recipe_expands_in_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        recipe_thing=RECIPE,
        profile_p="""\
schema: 1
name: p
environment: {MINE: x}
steps:
- {name: first, install: [a]}
- {recipe: thing, with: {version: "1.5"}}
- {name: last, pin: [b<3]}
guards:
- {keep: [Torch_Vision, "nvidia-*"]}
""",
    )
    profile = load(tmp_path, "p")
    assert [(step.name, step.arguments, step.recipe) for step in profile.steps] == [
        ("first", ("a",), None),
        ("thing", ("thing==1.5",), "thing"),
        ("after", ("other",), "thing"),
        ("last", ("b<3",), None),
    ]
    assert profile.steps[1].environment == {"V": "1.5"}
    assert profile.guards == (
        Hold(requirement="other<2", because="thing 1.5 wants it, ${kept} and ${Kept} stay"),
        Keep(names=("torch-vision", "nvidia-*")),
    )
    assert [entry.id for entry in profile.ignore] == ["leftover"]
    assert [(smoke.kind, smoke.name, smoke.timeout) for smoke in profile.smoke] == [
        (SmokeKind.IMPORT, "import thing", 300.0)
    ]
    assert profile.environment == {"THING": "1", "MINE": "x"}
    assert profile.indexes == (Index(name="pypi"),)


def test_a_profile_has_no_templating(tmp_path: Path) -> None:
    write(tmp_path, profile_p='schema: 1\nname: p\nsteps: [{name: a, run: [echo, "${version}"]}]\n')
    assert load(tmp_path, "p").steps[0].arguments == ("echo", "${version}")


def test_what_a_parameter_breaks_is_told_at_both_places(tmp_path: Path) -> None:
    write(
        tmp_path,
        recipe_thing=RECIPE,
        profile_p='schema: 1\nname: p\nsteps:\n- {recipe: thing, with: {version: "1.5", range: " x"}}\n',
    )
    assert messages(tmp_path, "p") == [
        (
            "recipes/thing.yaml:11:10: invalid requirement `other x`: Expected semicolon (after name with no version "
            f"specifier) or end (`range` is given in {tmp_path}/profiles/p.yaml:4:49)"
        )
    ]


def test_mistakes_in_the_recipe_itself(tmp_path: Path) -> None:
    recipe = """\
schema: 1
name: thing
stps: []
parameters: {version: {descripton: x}, Bad: {description: x}}
steps:
- {name: a, install: ["b==${vresion}"]}
- {recipe: other}
releases: [{version: x, reference: y, checked: z}]
"""
    write(
        tmp_path,
        recipe_thing=recipe,
        profile_p='schema: 1\nname: p\nsteps: [{recipe: thing, with: {version: "1", Bad: "2"}}]\n',
    )
    assert messages(tmp_path, "p") == [
        "recipes/thing.yaml:3:1: unknown key `stps`; did you mean `steps`?",
        "recipes/thing.yaml:4:24: unknown key `descripton`; did you mean `description`?",
        "recipes/thing.yaml:4:40: invalid name `Bad`: it must match `^[a-z][a-z0-9_]*$`",
        (
            "recipes/thing.yaml:6:23: invalid requirement `b==${vresion}`: "
            "Expected semicolon (after name with no version specifier) or end"
        ),
        "recipes/thing.yaml:6:23: unknown parameter `vresion`; did you mean `version`?",
        "recipes/thing.yaml:7:4: a recipe cannot use another recipe",
        "recipes/thing.yaml:8:22: invalid version `x`",
    ]


def test_broken_and_newer_recipes(tmp_path: Path) -> None:
    write(
        tmp_path,
        recipe_broken="a: [",
        recipe_newer="schema: 9\nname: newer\n",
        profile_p="schema: 1\nname: p\nsteps: [{recipe: broken}, {recipe: newer}]\n",
    )
    assert messages(tmp_path, "p") == [
        "recipes/broken.yaml:1:5: YAML: while parsing a flow node expected the node content, but found '<stream end>'",
        "recipes/newer.yaml:1:9: schema 9 is newer than this envforge reads (1): update envforge",
    ]


def test_a_recipe_used_twice_and_recipes_that_disagree(tmp_path: Path) -> None:
    write(
        tmp_path,
        recipe_one="schema: 1\nname: one\nsteps: [{name: a, install: [b]}]\nenvironment: {X: '1'}\n",
        recipe_two="schema: 1\nname: two\nenvironment: {X: '2'}\n",
        profile_twice="schema: 1\nname: p\nsteps: [{recipe: one}, {recipe: one}]\n",
        profile_two="schema: 1\nname: p\nsteps:\n- {recipe: one}\n- {recipe: two}\n",
        profile_own="schema: 1\nname: p\nenvironment: {X: '3'}\nsteps:\n- {recipe: one}\n- {recipe: two}\n",
    )
    assert messages(tmp_path, "twice") == [
        f"recipes/one.yaml:3:16: duplicate step `a`, first given in {tmp_path}/recipes/one.yaml:3"
    ]
    assert messages(tmp_path, "two") == [
        "profiles/two.yaml:5:12: recipe `two` and one before it set `X` differently: set it in `environment`"
    ]
    assert load(tmp_path, "own").environment == {"X": "3"}


BASE = """\
schema: 1
name: base
summary: the base
gpu: {compute_capability: "==7.0"}
python: "3.10"
indexes:
- {name: torch, url: https://one.example/simple, packages: [torch]}
- {name: pypi}
environment: {A: "1", B: "2"}
steps:
- {name: one, install: [a]}
- {name: two, install: [b], indexes: [torch]}
guards:
- {forbid: [x]}
smoke:
- {import: [a], name: imports}
commands: {serve: [a]}
"""


def test_extends_replaces_by_name_and_adds_guards(tmp_path: Path) -> None:
    write(
        tmp_path,
        profile_base=BASE,
        profile_p="""\
schema: 1
name: p
extends: base
python: "3.12"
indexes:
- {name: torch, url: https://two.example/simple}
environment: {B: "3"}
steps:
- {name: two, install: [c], indexes: [torch]}
- {name: three, install: [d]}
guards:
- {forbid: [x]}
- {symbol: s, library: l.so}
smoke:
- {import: [b], name: imports}
- {python: pass}
""",
    )
    profile = load(tmp_path, "p")
    assert (profile.name, profile.summary, profile.python) == ("p", "the base", "3.12")
    assert profile.gpu is not None
    assert profile.gpu.compute_capability == ("==7.0",)
    assert profile.indexes == (Index(name="torch", url="https://two.example/simple"), Index(name="pypi"))
    assert profile.environment == {"A": "1", "B": "3"}
    assert [(step.name, step.arguments) for step in profile.steps] == [
        ("one", ("a",)),
        ("two", ("c",)),
        ("three", ("d",)),
    ]
    assert profile.guards == (Forbid(patterns=("x",)), Symbol(symbol="s", library="l.so"))
    assert [(smoke.name, smoke.arguments) for smoke in profile.smoke] == [("imports", ("b",)), ("pass", ("pass",))]
    assert profile.commands == {"serve": ("a",)}


def test_models_of_recipes_come_first_and_extends_replaces_by_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        recipe_thing="""\
schema: 1
name: thing
parameters: {size: {description: x}}
models:
- {name: "Qwen/${size}", from: modelscope}
""",
        profile_base="""\
schema: 1
name: base
steps: [{recipe: thing, with: {size: small}}]
models:
- {name: mine, from: path, path: ~/mine}
- {name: gpt2, from: huggingface}
""",
        profile_p="schema: 1\nname: p\nextends: base\nmodels: [{name: mine, from: huggingface, revision: v1}]\n",
    )
    assert load(tmp_path, "p").models == (
        Model(name="Qwen/small", hub=Hub.MODELSCOPE, revision="master"),
        Model(name="mine", hub=Hub.HUGGINGFACE, revision="v1"),
        Model(name="gpt2", hub=Hub.HUGGINGFACE, revision="main"),
    )


def test_a_path_is_relative_to_the_file_that_extends(tmp_path: Path) -> None:
    write(tmp_path, profile_base=BASE, profile_p="schema: 1\nname: p\nextends: ./base.yaml\ngpu: null\n")
    assert load(tmp_path, "p").gpu is None


def test_mistakes_in_the_base_are_told_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        profile_base="schema: 1\nname: base\nstep: []\nsteps: [{name: a, run: []}]\n",
        profile_p="schema: 1\nname: p\nextends: base\nguards: [{hold: a}]\n",
    )
    assert messages(tmp_path, "p") == [
        "profiles/base.yaml:3:1: unknown key `step`; did you mean `steps`?",
        "profiles/base.yaml:4:24: must not be empty",
        "profiles/p.yaml:4:17: `a` holds nothing: give a version specifier, such as `a<2`",
    ]


def test_a_circle_is_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        profile_a="schema: 1\nname: a\nextends: b\n",
        profile_b="schema: 1\nname: b\nextends: a\n",
    )
    assert messages(tmp_path, "a") == [
        "profiles/b.yaml:3:10: `extends` goes in a circle: `a.yaml` -> `b.yaml` -> `a.yaml`"
    ]


def test_an_index_of_a_base_that_is_missing_is_not_told_as_well(tmp_path: Path) -> None:
    write(
        tmp_path,
        profile_p="schema: 1\nname: p\nextends: ./gone.yaml\nsteps: [{name: a, install: [b], indexes: [torch]}]\n",
    )
    [message] = messages(tmp_path, "p")
    assert "gone.yaml` cannot be read (no such file or directory)" in message
