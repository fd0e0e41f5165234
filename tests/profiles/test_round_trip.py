"""The expanded text of a profile loads again to an equal profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envforge.model.profile import (
    Action,
    Backend,
    Conda,
    Device,
    Forbid,
    Generate,
    Generator,
    Gpu,
    Guard,
    Hold,
    Hub,
    Ignore,
    Index,
    Keep,
    Model,
    Profile,
    Release,
    Smoke,
    SmokeKind,
    Step,
    Symbol,
)
from envforge.profiles import build, loader, lookup

# Words that YAML reads as something else when they stand unquoted.
TRICKY = [
    "yes",
    "on",
    "~",
    "null",
    "08",
    "1e5",
    "1_000",
    "0x10",
    "3.10",
    "12:30:45",
    "2025-07-25",
    "<<",
    "=",
    "- a",
    "a: b",
]
TRICKY += [
    "#a",
    "a #b",
    "!x",
    "&a",
    "*a",
    "%a",
    "@a",
    "`a`",
    "{a}",
    "[a",
    "'",
    '"',
    "|",
    ">",
    "\ta",
    " a ",
    "a\n",
    "\n a",
    "a\r\n",
]
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXT = st.one_of(st.sampled_from(TRICKY), st.text(CHARACTERS, min_size=1, max_size=30)).filter(
    lambda text: text.strip()
)
NAMES = st.one_of(
    st.sampled_from(["on", "1e5", "08", "null", "3.10"]),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True),
)
CANONICAL = st.from_regex(r"[a-z0-9]{1,4}(-[a-z0-9]{1,4})?", fullmatch=True)
REQUIREMENTS = st.builds(
    "{}{}".format, CANONICAL, st.sampled_from(["", "<2", ">=1,!=1.5", "==1.0+cu126", "; python_version < '3'"])
)
SPECS = st.builds("{}{}".format, CANONICAL, st.sampled_from(["", " >=1,<2", "=1.5=h_0", "[build=x]", " 08"]))
CHANNELS = st.sampled_from(["conda-forge", "null", "forge/label/dev", "https://conda.example.org/mine", "08"])
VARIABLES = st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True), TEXT, max_size=3)
MAYBE = st.none() | TEXT


def some(values: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(values, min_size=least, max_size=3).map(tuple)


RELEASES = st.builds(
    Release,
    name=CANONICAL,
    version=st.sampled_from(["0.10.0", "2.7.1+cu126"]),
    compute_capability=some(st.sampled_from([">=7.0", "==8.6"])),
    essential=some(TEXT),
    reference=MAYBE,
)


@st.composite
def steps(draw: st.DrawFn, name: str) -> Step:
    action = draw(st.sampled_from(Action))
    resolving = action in {Action.INSTALL, Action.BACKFILL, Action.PIN}
    install = action is Action.INSTALL
    arguments = {Action.UNINSTALL: CANONICAL, Action.CONDA: SPECS, Action.RUN: TEXT}.get(action, REQUIREMENTS)
    return Step(
        name=name,
        action=action,
        arguments=draw(some(arguments, 1)),
        indexes=draw(st.none() | st.just(("pypi",))) if resolving else None,
        upgrade=install and draw(st.booleans()),
        no_deps=install and draw(st.booleans()),
        no_build_isolation=draw(some(CANONICAL)) if resolving else (),
        constraints=draw(some(REQUIREMENTS)) if resolving else (),
        build_constraints=draw(some(REQUIREMENTS)) if resolving else (),
        allow=draw(some(CANONICAL)) if install else (),
        environment=draw(VARIABLES),
        recipe=draw(st.none() | NAMES),
    )


@st.composite
def guards(draw: st.DrawFn) -> Guard:
    because, reference = draw(MAYBE), draw(MAYBE)
    kind = draw(st.integers(0, 3))
    patterns = some(st.sampled_from(["torch", "nvidia-*", "a[bc]?"]), 1)
    if kind == 0:
        return Keep(names=draw(patterns), constrain=draw(st.booleans()), because=because, reference=reference)
    if kind == 1:
        return Hold(requirement="a<2", constrain=draw(st.booleans()), because=because, reference=reference)
    if kind == 2:
        return Forbid(patterns=draw(patterns), because=because, reference=reference)
    return Symbol(symbol=draw(TEXT), library=draw(TEXT), because=because, reference=reference)


@st.composite
def smokes(draw: st.DrawFn, name: str) -> Smoke:
    kind = draw(st.sampled_from(SmokeKind))
    arguments = {
        SmokeKind.IMPORT: some(st.sampled_from(["a", "a.b_c"]), 1),
        SmokeKind.PYTHON: TEXT.map(lambda text: (text,)),
        SmokeKind.COMMAND: some(TEXT, 1),
        SmokeKind.GENERATE: st.just(()),
    }[kind]
    generate = draw(generates()) if kind is SmokeKind.GENERATE else None
    devices = [Device.CUDA] if generate is not None else [None, Device.CUDA, Device.CPU]
    if generate is not None and generate.engine is Generator.TRANSFORMERS:
        devices.append(Device.CPU)
    return Smoke(
        kind=kind,
        arguments=draw(arguments),
        name=name,
        timeout=draw(st.floats(0.1, 1e6)),
        device=draw(st.sampled_from(devices)),
        generate=generate,
    )


@st.composite
def generates(draw: st.DrawFn) -> Generate:
    return Generate(
        engine=draw(st.sampled_from(Generator)),
        model=draw(st.sampled_from(["/models/a b", "owner/name-1.5b", "name"])),
        prompt=draw(TEXT),
        dtype=draw(st.sampled_from(["auto", "float16", "bfloat16", "float32"])),
        expect=draw(MAYBE),
    )


@st.composite
def models(draw: st.DrawFn, name: str) -> Model:
    hub = draw(st.sampled_from(Hub))
    if hub is Hub.PATH:
        return Model(name=name, hub=hub, revision="", path=draw(st.sampled_from(["/a b", "~/c"])))
    return Model(name=f"{name}/{name}", hub=hub, revision=draw(st.sampled_from(["main", "v1.0", "0123456", "1e5"])))


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    indexes = draw(st.lists(NAMES, max_size=2, unique=True))
    specifiers = st.sampled_from([">=1", "==7.0", ">=525.60.13,<600"])
    named = st.lists(NAMES, max_size=3, unique=True)
    value = Profile(
        name=draw(NAMES),
        source="somewhere/p.yaml",
        text="",
        summary=draw(TEXT),
        gpu=draw(
            st.none()
            | st.builds(
                Gpu,
                compute_capability=some(specifiers),
                driver=st.none() | specifiers,
                memory_gib=st.none() | specifiers,
                count=st.none() | specifiers,
            )
        ),
        python=draw(st.sampled_from(["3.10", "3.10.13", ">=3.11", ">=3.11,<4"])),
        backend=Backend.CONDA,
        conda=Conda(channels=draw(some(CHANNELS)), packages=draw(some(SPECS))),
        indexes=(
            *(
                Index(name=name, url="https://a.example/s", packages=("nvidia-*",))
                for name in indexes
                if name != "pypi"
            ),
            Index(name="pypi"),
        ),
        environment=draw(VARIABLES),
        steps=tuple(draw(steps(name)) for name in draw(named)),
        guards=tuple(draw(st.lists(guards(), max_size=3))),
        ignore=tuple(
            draw(st.lists(st.builds(Ignore, id=st.just("leftover"), subject=MAYBE, because=MAYBE), max_size=2))
        ),
        releases=tuple(draw(st.lists(RELEASES, max_size=2))),
        smoke=tuple(draw(smokes(name)) for name in draw(named)),
        models=tuple(draw(models(name)) for name in draw(named)),
        commands=dict.fromkeys(draw(named), ("a", "3.10", "")),
        sealed=draw(st.booleans()),
    )
    from dataclasses import replace

    return replace(value, text=build.dump(value))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(profile=profiles())
def test_the_expanded_text_loads_to_an_equal_profile(profile: Profile) -> None:
    again = loader.loads(profile.text, profile.source)
    assert again == profile
    assert again.text == profile.text


@pytest.mark.parametrize("path", lookup.catalogue(cwd=lookup.shipped("profiles").parent), ids=lambda path: path.stem)
def test_shipped_profiles_come_back_equal(path: Path, tmp_path: Path) -> None:
    profile = loader.load(path)
    # Neither recipes nor another profile are needed any more.
    assert loader.loads(profile.text, profile.source, cwd=tmp_path, config=tmp_path) == profile
    assert "recipe:" not in profile.text
