"""Global options count wherever they stand, and a user's command is never touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envforge.cli.words import arrange
from envforge.model.errors import UsageError


@pytest.mark.parametrize(
    ("line", "arranged", "verb", "json"),
    [
        ("list", "list", "list", False),
        ("--json list", "list --json", "list", True),
        ("list --home /h", "--home /h list", "list", False),
        ("list --home=/h --offline --size", "--home=/h --offline list --size", "list", False),
        ("show e --json -v", "-v show --json e", "show", True),
        ("plan p --machine f --quiet", "--quiet plan p --machine f", "plan", False),
        ("--home /h", "--home /h", None, False),
        ("--json", "", None, True),
        ("run e python -v", "run e -- python -v", "run", False),
        ("run e -v python -v", "-v run e -- python -v", "run", False),
        ("run --json e -- -x --json", "run --json e -- -x --json", "run", True),
        ("run e -- run", "run e -- run", "run", False),
        ("--home /h run e python --home /x", "--home /h run e -- python --home /x", "run", False),
        ("show -- --json", "show -- --json", "show", False),
    ],
)
def test_the_order_that_the_parser_wants(line: str, arranged: str, verb: str | None, *, json: bool) -> None:
    words = arrange(line.split())
    assert (" ".join(words.arguments), words.verb, words.json) == (arranged, verb, json)


@pytest.mark.parametrize("line", ["list --home", "--config"])
def test_a_value_that_is_missing(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        arrange(line.split())
    assert "needs a value" in caught.value.message


@given(st.lists(st.sampled_from(["-v", "--json", "--", "x", "--home", "run", "-c", "--help"])))
def test_whatever_is_run_gets_its_own_words(command: list[str]) -> None:
    assert arrange(["run", "e", "program", *command]).arguments == ("run", "e", "--", "program", *command)
    assert arrange(["run", "e", "--", *command]).arguments == ("run", "e", "--", *command)
