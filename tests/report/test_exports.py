"""What the formats make of odd texts, and of what only some environments have."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from envforge.model.export import Subject
from envforge.model.profile import Action, Device, Generate, Generator, Gpu, Index, Profile, Smoke, SmokeKind, Step
from envforge.model.state import Distribution, Origin, State
from envforge.report.exports import RENDERERS, dockerfile, requirements, script, smoke, stages, systemd

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=30)


def dist(name: str, version: str, digit: str = "a", **fields: object) -> Distribution:
    whole: dict[str, object] = {
        "name": name, "version": version, "index": "pypi", "file": f"{name}-{version}-py3-none-any.whl",
        "sha256": digit * 64,
    }  # fmt: skip
    return Distribution(**{**whole, **fields})  # type: ignore[arg-type]


def state(*dists: Distribution) -> State:
    return {each.name: each for each in dists}


def step(name: str, action: Action = Action.INSTALL, *arguments: str, **more: object) -> Step:
    return Step(name=name, action=action, arguments=arguments, **more)  # type: ignore[arg-type]


def subject(
    *states: State, steps: tuple[Step, ...] = (), indexes: Mapping[str, str | None] | None = None, **profile: object
) -> Subject:
    urls = {"pypi": "https://example.org/simple"} if indexes is None else indexes
    made = Profile(name="demo", source="", text="", steps=steps, **profile)  # type: ignore[arg-type]
    return Subject(
        environment="demo", snapshot="demo/1.1", profile=made, python="3.10.13", states=states, indexes=urls,
        program=("/usr/bin/envforge", "--home", "/srv"), command="serve",
    )  # fmt: skip


def only(form: str, given_: Subject) -> str:
    (text,) = RENDERERS[form](given_).files.values()
    return text


# -- steps -------------------------------------------------------------------------------------------------------------


def test_another_build_of_the_same_version_goes_first() -> None:
    made = subject(
        {}, state(dist("a", "1.0"), dist("b", "1.0"), dist("c", "1.0")), state(dist("a", "1.0", "b"), dist("b", "2.0")),
        steps=(step("one"), step("two")),
    )  # fmt: skip
    first, second = stages.stages(made)
    assert first.removed == ()
    assert second.removed == ("a", "c")
    assert [item.name for item in second.installed["pypi"]] == ["a", "b"]
    assert "uninstall a c\n" in only("script", made)


def test_what_a_program_put_there_and_what_the_python_brings_is_not_installed() -> None:
    pip = dist("pip", "24.0", origin=Origin(kind="python"))
    made = subject(
        state(pip), state(pip, Distribution(name="made", version="1.0")), steps=(step("one", Action.RUN, "x"),)
    )
    assert "==" not in only("requirements", made)
    assert any("`made`" in each and "`pip`" not in each for each in requirements.render(made).lost)


def test_requirements_come_in_the_order_of_the_steps() -> None:
    made = subject(
        {}, state(dist("z", "1.0")), state(dist("z", "1.0"), dist("a", "1.0")), steps=(step("one"), step("two"))
    )
    lines = [line for line in only("requirements", made).splitlines() if "==" in line]
    assert [line.partition("==")[0] for line in lines] == ["z", "a"]


def test_the_index_for_all_stands_last_and_those_that_nothing_came_from_are_left_out() -> None:
    indexes = (
        Index(name="all", url="u"), Index(name="torch", url="u", packages=("torch",)), Index(name="none", url="u"),
    )  # fmt: skip
    made = subject(
        {}, state(dist("a", "1.0", index="all"), dist("torch", "1.0", index="torch")), steps=(step("one"),),
        indexes={"all": "https://a.example/", "torch": "https://t.example/", "none": "https://n.example/"},
    )  # fmt: skip
    made = replace(made, profile=replace(made.profile, indexes=indexes))
    text = only("requirements", made)
    assert "--index-url https://a.example/\n--extra-index-url https://t.example/\na==" in text
    assert "n.example" not in text
    assert "--index-strategy" in text


# -- dockerfile --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [
        (("==7.0",), "7.0"),
        (("==8.*",), "8.0;8.6;8.7;8.9"),
        ((">=12.0",), "12.0;12.1+PTX"),
        (("==7.0", "==7.5"), "7.0;7.5"),
        ((), ""),
    ],
)
def test_the_architectures_that_torch_compiles_for(wanted: tuple[str, ...], listed: str) -> None:
    text = only("dockerfile", subject({}, gpu=Gpu(compute_capability=wanted, driver=">=525")))
    assert (f'ENV TORCH_CUDA_ARCH_LIST="{listed}"' in text) is bool(listed)
    assert 'LABEL envforge.driver=">=525"' in text
    assert 'ENV NVIDIA_VISIBLE_DEVICES="all"' in text


def test_the_profile_knows_better_what_torch_compiles_for() -> None:
    made = subject({}, gpu=Gpu(compute_capability=("==7.0",)), environment={"TORCH_CUDA_ARCH_LIST": "6.1"})
    assert only("dockerfile", made).count("TORCH_CUDA_ARCH_LIST") == 1


def test_no_gpu_is_declared_for_a_profile_that_needs_none() -> None:
    text = only("dockerfile", subject({}))
    assert "NVIDIA" not in text
    assert "FROM ${BASE}\n" in text
    assert "HEALTHCHECK" not in text


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (dist("torch", "2.7.1+cu126"), 'LABEL envforge.cuda="12.6"'),
        (dist("nvidia-cuda-runtime-cu12", "12.8.90"), 'LABEL envforge.cuda="12.8"'),
        (dist("torch", "1", file="torch-1-cp310-cp310-manylinux_2_28_aarch64.whl"), "FROM --platform=linux/arm64 "),
    ],
)
def test_what_the_files_are_for(item: Distribution, said: str) -> None:
    assert said in only("dockerfile", subject({}, state(item), steps=(step("one"),)))


def test_a_check_cannot_end_the_file_that_holds_it() -> None:
    check = Smoke(kind=SmokeKind.PYTHON, arguments=("x = '''\nEND\nRUN rm -rf /\n'''",), name="odd")
    text = only("dockerfile", subject({}, smoke=(check,)))
    assert "COPY <<'END_' /opt/demo/smoke.sh\n" in text
    assert "\nEND_\nHEALTHCHECK" in text


def test_a_check_that_generates_is_told_to_be_lost() -> None:
    asked = Generate(engine=Generator.VLLM, model="a/b", prompt="x")
    generates = Smoke(kind=SmokeKind.GENERATE, arguments=(), name="it speaks", device=Device.CUDA, generate=asked)
    other = Smoke(kind=SmokeKind.IMPORT, arguments=("six",), name="six", device=Device.CPU)
    for form in ("dockerfile", "script"):
        both = RENDERERS[form](subject({}, smoke=(generates, other)))
        assert "the smoke checks that generate with a model: `it speaks`" in both.lost
        assert "CUDA_VISIBLE_DEVICES= timeout 300 python -c 'import six'" in "".join(both.files.values())
        alone = "".join(RENDERERS[form](subject({}, smoke=(generates,))).files.values())
        assert "HEALTHCHECK" not in alone
        assert "smoke checks" not in alone


@given(TEXTS)
def test_a_value_of_a_dockerfile_stays_one(text: str) -> None:
    quoted = dockerfile._quoted(text)
    assert "\n" not in quoted
    assert re.fullmatch(r'"(?:[^"\\$]|\\.)*"', quoted)
    assert re.sub(r"\\(.)", r"\1", quoted[1:-1]) == text.replace("\n", " ")


def test_a_line_break_that_is_lost_is_told() -> None:
    made = subject({}, environment={"TWO": "a\nb"})
    assert any("`TWO`" in each and "line break" in each for each in dockerfile.render(made).lost)


# -- systemd -----------------------------------------------------------------------------------------------------------


def test_a_service_waits_for_gpus_where_its_profile_is_for_some() -> None:
    service = systemd.render(subject({}, gpu=Gpu())).files["demo-serve.service"]
    assert '"run" "--strict" "--wait-gpu" "120" "demo" "serve"\n' in service
    assert "--wait-gpu" not in systemd.render(subject({})).files["demo-serve.service"]


@given(TEXTS)
def test_a_word_of_a_unit_stays_one(text: str) -> None:
    word = systemd._words([text])
    assert "\n" not in word
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', word)
    assert word.replace("%%", "").count("%") == 0
    assert word.replace("$$", "").count("$") == 0


def test_a_command_with_a_name_that_no_file_has() -> None:
    made = subject({}, commands={"serve": ("x",)})
    odd = replace(made, command="../a b\n[Service]")
    files = systemd.render(odd).files
    assert next(iter(files)) == "demo-.._a_b__Service_.service"
    assert files["demo-.._a_b__Service_.service"].count("\n[Service]\n") == 1


# -- script ------------------------------------------------------------------------------------------------------------


@given(st.lists(TEXTS.filter(lambda text: "\0" not in text), min_size=1, max_size=3))
def test_words_come_through_the_shell_as_they_are(words: list[str]) -> None:
    line = smoke._line(Smoke(kind=SmokeKind.COMMAND, arguments=("x", *words), name="odd", timeout=2.5))
    assert line.startswith("timeout 2.5 x ")
    assert shlex.split(line)[3:] == words


def test_odd_texts_make_no_lines_of_their_own() -> None:
    odd = "a\nrm -rf /\n'b'"
    made = subject(
        {}, {}, steps=(step("one", Action.RUN, "python", "-c", odd, environment={"A": odd}),), summary=odd,
        environment={"B": odd},
    )  # fmt: skip
    text = only("script", made)
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "# rm -rf /\n" in text
    carried = script.render(made)
    assert carried.lost == ()


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_every_format_says_how_many_paths_have_two_owners_and_whose_credentials_are_left_out() -> None:
    made = subject({}, state(dist("a", "1.0")), steps=(step("one"),))
    made = replace(made, contested=2, private=("pypi",))
    for form in ("requirements", "script", "dockerfile", "environment-yml"):
        lost = "\n".join(RENDERERS[form](made).lost)
        assert "2 paths that more than one owns" in lost
        assert "the credentials of `pypi`" in lost


def test_the_texts_are_what_their_readers_take() -> None:
    made = subject({}, environment={"A": 'yes: "no" # \\'})
    assert yaml.safe_load(only("environment-yml", made))["variables"] == {
        "A": 'yes: "no" # \\',
        "PYTHONNOUSERSITE": "1",
    }
    spec = json.loads(only("kernelspec", made))
    assert spec["argv"][:4] == ["/usr/bin/envforge", "--home", "/srv", "run"]
    assert any("ipykernel" in each for each in RENDERERS["kernelspec"](made).lost)
