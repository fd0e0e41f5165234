"""The words match the tool: every id, option, key and code has its place, examples work, links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from envforge.cli.app import VERBS, build
from envforge.model import draft, machine, smoked, views
from envforge.model.finding import FINDING_IDS
from envforge.profiles import forms, loader, settings
from envforge.profiles.settings_form import SettingsForm
from envforge.profiles.tree import parse

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = (README, *sorted(DOCS.glob("*.md")))
RESERVED = "Reserved for later versions"


def text(page: str) -> str:
    """A page without its blocks of code."""
    return without_blocks((DOCS / page).read_text(encoding="utf-8"))


def sections(page: str) -> dict[str, str]:
    """Heading -> what stands below it, up to the next heading of any level."""
    parts = re.split(r"^#{1,6} (.+)$", text(page), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def without_blocks(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [str(block) for block in found]


def spans(words: str) -> set[str]:
    """What stands in backticks, and each word of it."""
    literals = re.findall(r"`([^`]+)`", words)
    return {*literals, *(part for literal in literals for part in literal.split())}


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", without_blocks(path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def calls() -> tuple[tuple[str, ast.Call], ...]:
    """Every call in the source with the last part of its function's name."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src" / "envforge").rglob("*.py"))
    found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple((ast.unparse(node.func).rpartition(".")[2], node) for node in found)


def raised_findings() -> set[str]:
    """Ids that stand as constants in the rooms that make findings."""
    rooms = (ROOT / "src" / "envforge" / room for room in ("rules", "forge"))
    trees = (ast.parse(path.read_text(encoding="utf-8")) for room in rooms for path in room.rglob("*.py"))
    constants = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return set(FINDING_IDS & constants)


def error_codes() -> set[str]:
    raising = {"EnvforgeError", "UsageError", "LeftoverError", "InterruptedByUserError", "NotFoundError"}
    raising |= {"NotExecutableError", "InvalidFileError", "invalid"}
    constants = {
        part.value
        for name, call in calls()
        if name in raising and call.args
        for part in ast.walk(call.args[0])
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    # What is put together from parts: `unknown-`, `hidden-` and `index-` with what follows.
    return {code for code in constants if not code.endswith("-")}


# -- findings and errors -----------------------------------------------------------------------------------------------


def test_every_finding_that_can_be_raised_has_a_section_and_all_others_are_reserved() -> None:
    raised, found = raised_findings(), sections("findings.md")

    assert raised
    assert raised <= FINDING_IDS
    assert found.keys() & FINDING_IDS == raised
    assert spans(found[RESERVED]) & FINDING_IDS == FINDING_IDS - raised


@pytest.mark.parametrize("finding", sorted(raised_findings()))
def test_the_section_of_a_finding_says_what_it_means_how_it_is_found_and_what_to_do(finding: str) -> None:
    section = sections("findings.md")[finding]

    assert all(f"**{word}:**" in section for word in ("Means", "Found", "Do"))
    assert re.match(r"\s*(Error|Warning|Info)\b", section)


def test_every_error_code_is_listed() -> None:
    listed = spans(text("errors.md"))
    dynamic = {"unknown-recipe", "hidden-recipe", "hidden-profile"}
    dynamic |= {f"index-{kind}" for kind in ("unreachable", "unauthorized", "malformed", "missing")}

    assert {"locked", "unsolvable", "invalid-profile"} <= error_codes()
    assert (error_codes() | dynamic) - listed == set()


# -- the command line --------------------------------------------------------------------------------------------------


def options(verb: str | None) -> set[str]:
    command = build() if verb is None else build().get_command(None, verb)
    return {option for parameter in command.params for option in parameter.opts if option.startswith("-")}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_section_with_its_options_and_an_example(verb: str) -> None:
    section = sections("commands.md")[verb]
    general = spans(sections("commands.md")["Options for every command"])

    assert options(verb) - spans(section) - general == set()
    assert f"[{verb}](#{verb})" in text("commands.md")
    assert any(word == verb for line in command_lines(DOCS / "commands.md") for word in line[:1])


def test_every_global_option_is_explained() -> None:
    general = spans(sections("commands.md")["Options for every command"])

    assert options(None) - general == set()
    assert {"--json", "--help", "-h"} <= general


def command_lines(path: Path) -> list[list[str]]:
    """The words of every call of envforge in the examples, verb first; global options that stand before it go."""
    lines = "\n".join(blocks(path, "sh")).splitlines()
    found = [re.search(r"(?:\./bootstrap\.sh|(?<![\w/.])envforge) ([a-z].*)", line) for line in lines]
    return [shlex.split(match[1].removesuffix(')"'), comments=True) for match in found if match is not None]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_call_what_is_there(path: Path) -> None:
    known = {*VERBS, "test"}  # the second word of `./bootstrap.sh test` is no verb of envforge
    for words in command_lines(path):
        assert words[0] in known
        if words[0] not in {"run", "test"}:
            given = {word.partition("=")[0] for word in words if word.startswith("-")}
            assert given - options(words[0]) - options(None) == set(), words
    inline = re.findall(r"`envforge ([a-z]+)\b", without_blocks(path.read_text(encoding="utf-8")))
    assert set(inline) - set(VERBS) == set()


def test_the_readme_shows_every_verb_and_the_two_commands() -> None:
    shown = {words[0] for words in command_lines(README)}

    assert set(VERBS) <= shown
    assert blocks(README, "sh")[0].splitlines() == ["./bootstrap.sh create quickstart", "./bootstrap.sh test"]


# -- profiles, recipes, configuration ----------------------------------------------------------------------------------

FORMS: dict[str, tuple[type[forms.Form], ...]] = {
    "Top level": (forms.ProfileForm,),
    "gpu": (forms.GpuForm,),
    "conda": (forms.CondaForm,),
    "indexes": (forms.IndexForm,),
    "steps": (forms.StepForm,),
    "guards": (forms.GuardForm,),
    "ignore": (forms.IgnoreForm,),
    "releases": (forms.KnownReleaseForm,),
    "smoke": (forms.SmokeForm, forms.GenerateForm),
    "models": (forms.ModelForm,),
    "Recipes": (forms.RecipeForm, forms.ParameterForm, forms.ReleaseForm),
}


@pytest.mark.parametrize("heading", FORMS)
def test_every_key_of_a_profile_is_explained(heading: str) -> None:
    section = spans(sections("profile.md")[heading])
    keys = {info.alias or name for form in FORMS[heading] for name, info in form.model_fields.items()}

    assert keys - section == set()


def test_no_form_is_forgotten() -> None:
    there = {value for value in vars(forms).values() if isinstance(value, type) and issubclass(value, forms.Form)}

    assert there - {forms.Form} == {form for several in FORMS.values() for form in several}


def test_every_setting_is_explained_with_its_variable() -> None:
    section = spans(sections("configuration.md")["Settings"])

    for name in SettingsForm.model_fields:
        assert {name, f"ENVFORGE_{name.upper()}"} <= section


def test_the_first_profile_has_ten_lines_and_loads(tmp_path: Path) -> None:
    first = blocks(README, "yaml")[0]
    profile = loader.loads(first, "notebook.yaml", cwd=tmp_path, config=tmp_path)

    assert len(first.splitlines()) == 10
    assert profile.name == "notebook"
    assert profile.steps
    assert profile.guards
    assert profile.smoke


def using(recipe: Path) -> str:
    """A profile that uses ``recipe`` and gives every parameter that it must."""
    parameters = parse(recipe.read_bytes(), recipe.name).entries("parameters")
    given = "".join(f"      {name}: '1.0'\n" for name, entry in parameters.items() if entry.get("default") is None)
    return f"schema: 1\nname: user\nsteps:\n  - recipe: {recipe.stem}\n    with:\n{given}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_yaml_example_is_valid(path: Path, tmp_path: Path) -> None:
    for block in blocks(path, "yaml"):
        if block.startswith("# recipes/"):
            written = tmp_path / block.splitlines()[0].removeprefix("# ")
            written.parent.mkdir(exist_ok=True)
            written.write_text(block, encoding="utf-8")
            loader.loads(using(written), "user.yaml", cwd=tmp_path, config=tmp_path)
        elif block.startswith("# config.yaml"):
            written = tmp_path / "config.yaml"
            written.write_text(block, encoding="utf-8")
            settings.load({}, written)
        else:
            loader.loads(block, path.name, cwd=tmp_path, config=tmp_path)


# -- JSON --------------------------------------------------------------------------------------------------------------


def values() -> Iterator[type[Any]]:
    """What the looking commands print field by field."""
    for value in vars(views).values():
        if is_dataclass(value) and isinstance(value, type) and value.__module__ == views.__name__:
            yield value
    yield from (machine.Machine, machine.Card, machine.Interpreter, machine.Ambient)
    yield from (draft.Imported, draft.ImportNote)
    yield from (smoked.SmokeView, smoked.Proved, smoked.Compared, smoked.Beside, smoked.Smoked, smoked.Kept)
    yield smoked.Generated


@pytest.mark.parametrize("value", tuple(values()), ids=lambda value: value.__name__)
def test_every_field_that_is_printed_is_listed(value: type[Any]) -> None:
    listed = spans(text("json.md"))

    assert {field.name for field in fields(value)} - listed == set()


def test_every_key_of_plan_and_build_is_listed() -> None:
    source = ast.parse((ROOT / "src/envforge/report/json.py").read_text(encoding="utf-8"))
    keys = {
        str(key.value)
        for node in ast.walk(source)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    listed = spans(text("json.md")) | set(re.findall(r'"(\w+)"', (DOCS / "json.md").read_text(encoding="utf-8")))

    assert {"steps", "totals", "cause"} <= keys
    assert keys - listed == set()


# -- links and hosts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", without_blocks(path.read_text(encoding="utf-8"))):
        assert "://" not in target
        file, _, anchor = target.partition("#")
        place = path if not file else (path.parent / file)
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place), target


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(docs/([^)#]+)", README.read_text(encoding="utf-8")))

    assert linked == {path.name for path in DOCS.glob("*.md")}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_host_is_named_but_examples(path: Path) -> None:
    hosts = re.findall(r"(?<![\w@.-])(?:[a-z0-9-]+\.)+(?:ai|com|dev|io|net|org)\b", path.read_text(encoding="utf-8"))

    assert [host for host in hosts if not host.endswith(("example.org", "example.com"))] == []
