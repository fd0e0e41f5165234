from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from rules.small import MARKERS, context, dist, found, install, profile, state, step

from envforge.model.profile import Action, Hold
from envforge.rules.context import requested
from envforge.rules.requirements import accepts, edges, parse
from envforge.rules.specifiers import overlap


def active(installed: object, *asked: str) -> list[str]:
    assert isinstance(installed, dict)
    return [f"{edge.owner}>{edge.wanted.text}" for edge in edges(installed, asked, MARKERS)]


def test_markers_are_judged_for_the_environment() -> None:
    installed = state(
        dist(
            "app 1.0",
            "six>=1; python_version < '3.11'",
            "tomli; python_version >= '3.11'",
            "pywin32; sys_platform == 'win32'",
            "all; extra == 'all'",
        )
    )
    assert active(installed) == ["app>six>=1"]


def test_extras_are_followed_from_the_step_through_every_owner() -> None:
    installed = state(
        dist("xinference 2.7.0", "xinference[audio]; extra == 'all'", "gruut[de]; extra == 'audio'", "x; extra == 'x'"),
        dist("gruut 2.0", "gruut-lang-de; extra == 'de' and python_version < '3.11'", "gruut-lang-en"),
    )
    assert active(installed) == ["gruut>gruut-lang-en"]
    assert active(installed, "Xinference[ALL]>=2") == [
        "gruut>gruut-lang-de",
        "gruut>gruut-lang-en",
        "xinference>xinference[audio]",
        "xinference>gruut[de]",
    ]
    assert active(installed, "xinference[all]; python_version < '3'") == ["gruut>gruut-lang-en"]


def test_old_metadata_is_read_as_installers_read_it_or_says_nothing() -> None:
    installed = state(dist("old 1.0", "torch (>=1.9.*,<3)", "a b c", "==1", "", "six (==1.0)"))
    assert active(installed) == ["old>torch>=1.9,<3", "old>six==1.0"]
    wanted = parse("own @ git+https://example.invalid/own.git ; python_version > '3'")
    assert wanted is not None
    assert (wanted.text, wanted.bounds) == ("own @ git+https://example.invalid/own.git", "")


def test_a_version_that_is_none_fits_nothing_but_itself() -> None:
    assert accepts("", "2004d")
    assert accepts("===2004d", "2004d")
    assert not accepts(">=1", "2004d")


def test_what_was_asked_for_is_taken_back_by_an_uninstall() -> None:
    about = context(
        profile(),
        (install("a", "app[x]", "six", "./local"), {}),
        (step("b", Action.UNINSTALL, "app"), {}),
        (step("c", Action.RUN, "python"), {}),
        (step("d", Action.PIN, "six<2"), {}),
    )
    assert requested(about) == ("six", "./local", "six<2")


def test_every_unmet_requirement_of_one_owner_is_told() -> None:
    installed = state(dist("app 1.0", "six>=2", "tomli", "tomli>=1", "ok"), dist("six 1.0"), dist("ok 1.0"))
    seen = found(context(profile(), (install("a", "app"), installed)))
    assert [each.evidence["required"] for each in seen] == ["six", "tomli"]
    assert [each.evidence["found"] for each in seen] == ["1.0", None]
    assert seen[1].message == "`app` 1.0 requires `tomli`, which is not installed"
    assert len({each.key for each in seen}) == 2


def test_the_late_pin_leaves_sentence_transformers_unsatisfied() -> None:
    """The bound as a pin at the end: the guard is healed, and what came between cannot live with it."""
    sentence = dist("sentence-transformers 6.2.0", "transformers>=5")
    about = context(
        profile(),
        (install("all", "sentence-transformers"), state(sentence, dist("transformers 5.20.2"))),
        (step("pin", Action.PIN, "transformers>=4.53.3,<5"), state(sentence, dist("transformers 4.57.6"))),
    )
    contradiction, unmet = found(about)
    assert contradiction.id == "pin-contradiction"
    assert contradiction.message == (
        "`transformers>=4.53.3,<5` (step `pin`) excludes every version that `sentence-transformers` 6.2.0 accepts: "
        "it requires `transformers>=5`"
    )
    assert unmet.message == (
        "`sentence-transformers` 6.2.0 requires `transformers>=5`, but 4.57.6 is installed: "
        "step `pin` asks for `transformers>=4.53.3,<5`"
    )


def test_a_hold_contradicts_from_the_start_and_one_finding_names_both_sources() -> None:
    installed = state(dist("vllm 0.10.0", "tokenizers>=0.21.1"), dist("tokenizers 0.22.2"))
    about = profile(Hold(requirement="tokenizers<0.16,>=0.13"))
    first = (install("vllm", "vllm"), installed)
    (seen,) = found(context(about, first), "pin-contradiction")
    assert seen.evidence["sources"] == ["the guard `hold`"]
    pin = (step("pin", Action.PIN, "tokenizers >=0.13, <0.16"), installed)
    (seen,) = found(context(about, first, pin), "pin-contradiction")
    assert seen.evidence["sources"] == ["the guard `hold`", "step `pin`"]


def test_a_pin_that_leaves_something_is_no_contradiction() -> None:
    installed = state(dist("vllm 0.10.0", "transformers>=4.53.2", "odd>=2,<1"), dist("transformers 5.0"))
    about = profile(Hold(requirement="transformers<5"), Hold(requirement="odd<9"))
    assert found(context(about, (install("a", "vllm"), installed)), "pin-contradiction") == ()


NAMES = st.sampled_from(["a", "b", "c"])
VERSIONS = st.sampled_from(["0.9", "1.0", "1.0.post1", "1.1rc1", "2.0+local", "2.0"])
CLAUSES = st.sampled_from(["", ">=1.0", "<2", "==1.0", "!=1.0", "~=1.0", ">1.0", "==2.0+local", "<=1.1", "==1.*"])
LINES = st.builds(
    lambda name, bounds, marker: f"{name}{bounds}{marker}",
    NAMES,
    CLAUSES,
    st.sampled_from(["", "; python_version < '3.11'", "; sys_platform == 'win32'"]),
)


@given(st.dictionaries(NAMES, st.tuples(VERSIONS, st.lists(LINES, max_size=3)), max_size=3))
def test_unmet_agrees_with_packaging(drawn: dict[str, tuple[str, list[str]]]) -> None:
    installed = state(*(dist(f"{name} {version}", *lines) for name, (version, lines) in drawn.items()))
    expected = set()
    for name, (_, lines) in drawn.items():
        for line in lines:
            wanted = Requirement(line)
            if wanted.marker is not None and not wanted.marker.evaluate(MARKERS):
                continue
            have = drawn.get(wanted.name)
            if have is None or not wanted.specifier.contains(have[0], prereleases=True):
                expected.add((name, wanted.name))
    seen = found(context(profile(), (install("s", *drawn), installed)), "requirement-unmet")
    assert {(each.subject, each.evidence["required"]) for each in seen} == expected


RELEASES = st.sampled_from(["0", "1", "1.0", "1.1", "1.0.1", "2", "2.1", "1!1"])
SUFFIXES = st.sampled_from(["", "", "a1", "rc1", ".post1", ".dev1", "rc1.dev1", "a1.post1", ".post1.dev1"])
BOUNDS = st.builds(str.__add__, RELEASES, SUFFIXES)
CLAUSE = st.one_of(
    st.builds(str.__add__, st.sampled_from([">=", "<=", ">", "<", "==", "!=", "==="]), BOUNDS),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), RELEASES),
    st.builds("~={}.0{}".format, RELEASES, SUFFIXES),
    st.builds("{}{}+cu126".format, st.sampled_from(["==", "!="]), RELEASES),
)
SPECIFIERS = st.lists(CLAUSE, min_size=1, max_size=3).map(",".join)
SAMPLED = st.builds(
    "{}{}{}".format,
    st.sampled_from(["0", "0.9", "1", "1.0", "1.0.0.1", "1.0.1", "1.1", "1.5", "2", "2.0.1", "3", "1!1", "1!2"]),
    st.sampled_from(
        ["", *[".dev0", ".dev2", "a0", "a1", "a2.dev1", "rc1", "rc1.post3", "rc7", ".post0", ".post1", ".post2.dev3"]]
    ),
    st.sampled_from(["", "+cu126"]),
)


@given(SPECIFIERS, SPECIFIERS, st.lists(SAMPLED, min_size=1, max_size=40))
def test_no_contradiction_is_claimed_where_a_version_fits_both(one: str, other: str, versions: list[str]) -> None:
    if any(accepts(one, version) and accepts(other, version) for version in versions):
        assert overlap(one, other)


@given(SPECIFIERS, SPECIFIERS)
def test_overlap_does_not_depend_on_the_order(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other", "some"),
    [
        ("<5", ">=5", False),
        ("<0.16,>=0.13", ">=0.21.1", False),
        ("==2.8.0", "==2.7.1", False),
        ("~=1.4", ">=2", False),
        ("!=5.0.*,<5.1", "==5.0.3", False),
        ("<5", ">=5.0rc1", False),
        ("==2.7.1+cu126", "==2.7.1+cu128", False),
        ("<5", ">=4.53.2", True),
        ("==2.7.1", "==2.7.1+cu126", True),
        (">1.0", "<1.0.1", True),
        ("<6,>=4.56,!=5.0.*", ">5", True),
        ("===odd", "===odd", True),
        ("", ">=1", True),
        ("not a specifier", "<1", True),
    ],
)
def test_bounds_that_people_write(one: str, other: str, *, some: bool) -> None:
    assert overlap(one, other) is some
