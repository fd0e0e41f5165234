"""What `suggest` tells of a real environment, what it keeps of that, and that it runs and changes nothing."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engines.house import OWN, House
from kit.index import Index, Server, serve
from kit.wheels import Wheel

from envforge.forge.audit import audit
from envforge.forge.prune import prune
from envforge.forge.suggest import suggest
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Severity
from envforge.model.result import Result
from envforge.model.views import SuggestView
from envforge.system import http

APP = Wheel(
    name="app",
    version="1.0",
    extras={"yaml": ("pyyaml>=6",)},
    files={"app/__init__.py": "import yaml\nopen('/ran', 'w')\nraise SystemExit\n"},
)
SIX = Wheel(name="six", version="1.0", files={"six/__init__.py": "import yaml.reader\nimport app.nothing\n"})
SIX_STEP = {"name": "six", "install": ["six"]}
STEPS = [{"name": "app", "install": ["app"]}, SIX_STEP]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture(name="server")
def _server() -> Iterator[Server]:
    with serve({"pypi": Index(artefacts=[APP, SIX])}) as server:
        yield server


@pytest.fixture(name="made")
def _made(tmp_path: Path, server: Server) -> House:
    made = House(tmp_path, server)
    made.create(STEPS)
    return made


def told(result: Result[SuggestView]) -> dict[tuple[str, str | None], Severity]:
    return {
        (each.subject, each.aspect): each.severity for each in result.findings if each.severity is not Severity.INFO
    }


def kept(made: House) -> set[str]:
    return {path.name.rpartition("-")[0] for path in (made.settings.cache / "imports").iterdir()}


def lines(result: Result[SuggestView]) -> list[tuple[str, bool, list[str]]]:
    return [
        (each.requirement, each.present, [f"{who.distribution} {who.place}" for who in each.importers])
        for each in result.data.backfill
    ]


def test_the_bound_comes_from_the_metadata_and_nothing_is_run_or_written_there(made: House) -> None:
    before = {path: path.lstat() for path in made.site().rglob("*")}
    result = suggest(made.shop, "demo")
    assert told(result) == {
        ("app", "yaml"): Severity.ERROR,
        ("six", "yaml"): Severity.ERROR,
    }
    assert lines(result) == [("pyyaml>=6", False, ["app app/__init__.py:1", "six six/__init__.py:1"])]
    assert result.exit == 3
    assert {path: path.lstat() for path in made.site().rglob("*")} == before
    assert not audit(made.shop, "demo", deep=True).exit


@pytest.mark.slow
def test_what_was_read_is_kept_for_every_environment_of_the_home(made: House) -> None:
    first = suggest(made.shop, "demo")
    assert first.data.read == first.data.distributions
    assert kept(made) - OWN == {"app", "six"}
    again = suggest(made.shop, "demo")
    assert (again.data.read, again.findings) == (0, first.findings)
    made.create([SIX_STEP], name="other")
    other = suggest(made.shop, "other")
    assert (other.data.read, set(told(other))) == (0, {("six", "yaml"), ("six", "app")})


@pytest.mark.parametrize("damage", ["", "[]", '{"schema": 2}', '{"schema": 1, "imports": [["a", "b"]]}', "{" * 2000])
def test_what_is_kept_and_not_understood_is_read_again(made: House, damage: str) -> None:
    first = suggest(made.shop, "demo")
    (place,) = (made.settings.cache / "imports").glob("app-*.json")
    good = place.read_text(encoding="utf-8")
    place.write_text(damage, encoding="utf-8")
    again = suggest(made.shop, "demo")
    assert (again.data.read, again.findings) == (1, first.findings)
    assert place.read_text(encoding="utf-8") == good


def test_a_file_that_was_changed_behind_its_back_teaches_nobody(made: House) -> None:
    (made.site() / "app" / "__init__.py").write_text("import os\n", encoding="utf-8")
    assert ("app", "yaml") not in told(suggest(made.shop, "demo"))
    assert "app" not in kept(made)


@pytest.mark.slow
def test_an_import_that_the_profile_ignores_is_a_remark_and_no_line(tmp_path: Path, server: Server) -> None:
    made = House(tmp_path, server)
    made.create(STEPS, ignore=[{"id": "import-undeclared", "because": "we never import them"}])
    result = suggest(made.shop, "demo")
    assert (told(result), result.data.backfill, result.exit) == ({}, (), 0)
    ignored = {each.evidence["ignored"] for each in result.findings if each.evidence.get("ignored")}
    assert ignored == {"we never import them"}


@pytest.mark.slow
def test_prune_takes_what_is_kept_of_distributions_that_are_gone(made: House) -> None:
    suggest(made.shop, "demo")
    made.create([SIX_STEP], again=True)
    prune(made.shop)
    assert kept(made) - OWN == {"app", "six"}, "the generation before may still be wanted"
    prune(replace(made.shop, settings=replace(made.settings, keep_generations=1)))
    assert kept(made) - OWN == {"six"}


def test_an_environment_that_is_not_there(made: House) -> None:
    with pytest.raises(UsageError, match="there is no environment `dome`"):
        suggest(made.shop, "dome")


def test_a_cache_that_cannot_be_written_is_said(made: House) -> None:
    scratch = made.settings.cache / "scratch"
    scratch.rmdir()
    scratch.write_text("in its place", encoding="utf-8")
    with pytest.raises(EnvforgeError) as error:
        suggest(made.shop, "demo")
    assert error.value.code == "imports-not-read"
    assert error.value.cause == "File exists"
