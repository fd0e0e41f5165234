from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules.small import dist, state

from envforge.model.drift import Drift, DriftEvent, FileDrift, Surroundings
from envforge.model.finding import FINDING_IDS, Finding
from envforge.model.machine import Ambient
from envforge.rules import drift, surroundings
from envforge.rules.events import events

NIGHT = 1790291400 * 10**9  # 2026-09-24 23:10 UTC
MINUTE = 60 * 10**9


def file(path: str, kind: str = "missing", *owners: str, when: int | None = NIGHT, uid: int | None = 7) -> FileDrift:
    return FileDrift(path=path, kind=kind, owners=owners, when=when, uid=uid)


def lost(*files: FileDrift) -> Drift:
    here = state(*(dist(f"{name} 1") for name in "abcd"))
    return Drift(before=here, after=here, files=files)


def upgraded(*times: tuple[str, int, str | None]) -> Drift:
    """Each of (name, minute, installer) went from 1 to 2, by the user 7."""
    return Drift(
        before=state(*(dist(f"{name} 1") for name, _, _ in times)),
        after=state(*(dist(f"{name} 2") for name, _, _ in times)),
        changed=tuple(name for name, _, _ in times),
        infos={name: (NIGHT + minute * MINUTE, 7, installer) for name, minute, installer in times},
    )


def told(found: Drift) -> list[Finding]:
    return list(drift.findings(found))


def test_files_of_one_distribution_are_one_finding_for_each_kind() -> None:
    gone = [file(f"lib/{number:02}", "missing", "a") for number in range(14)]
    found = told(lost(*gone, file("lib/x", "modified", "a")))
    assert [(each.id, each.subject, each.evidence["count"]) for each in found] == [
        ("file-missing", "a", 14),
        ("file-modified", "a", 1),
    ]
    assert found[0].evidence["paths"] == [f"lib/{number:02}" for number in range(10)]
    assert found[0].message == "14 files of `a` are gone (`lib/00` and others)"
    assert found[1].message == "`lib/x` of `a` is not as recorded"


def test_new_files_are_no_drift_and_files_of_nobody_are_told_by_path() -> None:
    found = told(lost(file("log", "extra"), file("one", "modified"), file("two", "modified"), file("x", "extra", "a")))
    assert [(each.id, each.subject) for each in found] == [("file-modified", "one"), ("file-modified", "two")]


def test_files_of_a_distribution_that_is_told_itself_are_its_evidence() -> None:
    found = told(
        Drift(
            before=state(dist("a 1")),
            after=state(dist("b 1")),
            missing=("a",),
            extra=("b",),
            files=(file("a.py", "missing", "a"), file("b.py", "extra", "b")),
            infos={"b": (NIGHT, 7, "pip")},
        )
    )
    assert [(each.id, each.subject, each.evidence["paths"]) for each in found] == [
        ("package-missing", "a", ["a.py"]),
        ("package-extra", "b", ["b.py"]),
    ]
    assert found[0].message == "`a` 1 was recorded and is not installed any more; 1 file is gone"
    assert found[1].message == "`b` 1 is installed and was not recorded; `pip` put it there"


@pytest.mark.parametrize(
    ("before", "after", "differs", "message"),
    [
        ({}, {"version": "2"}, {"version"}, "`a` 1 was recorded, 2 is installed"),
        ({"build": "1"}, {"build": "2"}, {"build"}, "the same version with another build"),
        ({"index": "one"}, {"index": "two"}, {"source"}, "the same version with another source"),
        (
            {"contents": "0", "record": "0"},
            {"contents": "1", "record": "1"},
            {"contents", "RECORD"},
            "the same version with another contents",
        ),
        ({"record": "0"}, {"record": "1"}, {"RECORD"}, "has another RECORD than was recorded"),
    ],
)
def test_what_differs_in_a_changed_distribution(
    before: dict[str, str], after: dict[str, str], differs: set[str], message: str
) -> None:
    old = dist("a 1", **before)
    new = dist(f"a {after.pop('version', '1')}", **after)
    (found,) = told(Drift(before=state(old), after=state(new), changed=("a",)))
    assert set(found.evidence["differs"]) == differs
    assert message in found.message


def test_every_finding_has_a_remedy_and_a_name_of_the_contract() -> None:
    everything = Surroundings(
        system_site=True,
        user_site="/home/x/site",
        shadowed=("numpy",),
        pythonpath=("/one", "/two"),
        libraries={"LD_PRELOAD": "/x.so"},
        proxies=("ALL_PROXY",),
        ambient=(Ambient(tool="pip", source="/etc/pip.conf", settings=("global.index-url",)),),
        unowned=("lib/x.pth", "lib/sitecustomize.py", "bin/random.py"),
    )
    found = surroundings.findings(everything)
    assert {each.id for each in found} == {
        "file-unowned", "user-site-visible", "ambient-config", "library-path-override", "proxy-scheme"
    }  # fmt: skip
    assert {each.id for each in found} <= FINDING_IDS
    assert len({each.key for each in found}) == len(found)
    assert [each.subject for each in found if each.severity == "error"] == list(everything.unowned)
    assert any("both hold `numpy`" in each.message for each in found)
    assert surroundings.findings(Surroundings()) == ()


def one(found: Drift) -> DriftEvent:
    (event,) = events(found, {7: "x"})
    return event


def test_what_one_hand_did_at_once_is_one_event() -> None:
    event = one(upgraded(("a", 0, "pip"), ("b", 2, "pip"), ("c", 3, "pip"), ("d", 5, "pip")))
    assert event.text == "4 distributions changed, 2026-09-24 23:10 to 23:15 UTC, pip, by x"
    assert (event.first, event.last) == ("2026-09-24T23:10:00Z", "2026-09-24T23:15:00Z")
    assert event.distributions == ("a", "b", "c", "d")


def test_hands_and_gaps_part_events() -> None:
    found = events(upgraded(("a", 0, "pip"), ("b", 1, "uv"), ("c", 4, "pip"), ("d", 120, None)), {})
    assert [(each.distributions, each.installer, each.by) for each in found] == [
        (("a",), "pip", "uid 7"),
        (("b",), "uv", "uid 7"),
        (("c",), "pip", "uid 7"),
        (("d",), None, "uid 7"),
    ]


def test_who_deleted_is_not_known_and_when_only_at_the_latest() -> None:
    event = one(lost(file("lib/a", "missing", "a"), file("lib/b", "missing", "a")))
    assert event.text == ("2 files of a gone, 2026-09-24 23:10 UTC at the latest, by whom cannot be known")
    assert event.by is None


def test_a_distribution_that_is_gone_and_lost_files_of_another_are_told_apart() -> None:
    found = Drift(
        before=state(dist("a 1"), dist("b 1")),
        after=state(dist("b 1")),
        missing=("a",),
        files=(file("a.py", "missing", "a"), file("b.py", "missing", "b"), file("c.py", "missing")),
    )
    assert one(found).text.startswith("1 distribution gone (a), 3 files of 2 distributions, 2026")
    few = one(lost(file("b.py", "missing", "b"), file("c.py", "missing")))
    assert few.text.startswith("2 files of b, no distribution gone, 2026")


def test_over_midnight_both_days_are_named() -> None:
    assert "2026-09-24 23:59 to 2026-09-25 00:00 UTC" in one(upgraded(("a", 49, "pip"), ("b", 50, "pip"))).text


def test_a_file_of_nobody_and_a_time_that_is_not_known() -> None:
    event = one(lost(file("pyvenv.cfg", "modified", when=None)))
    assert event.text == "1 file of no distribution changed (`pyvenv.cfg`), when cannot be known, by x"
    assert (event.first, event.last) == (None, None)


def test_no_event_for_what_is_no_finding() -> None:
    assert events(lost(file("log", "extra"), file("closed", "unreadable", "a")), {}) == ()


FILES = st.builds(
    FileDrift,
    path=st.text("abc", min_size=1, max_size=3),
    kind=st.sampled_from(["missing", "modified", "extra", "unreadable"]),
    owners=st.lists(st.sampled_from("abcd"), unique=True, max_size=2).map(tuple),
    when=st.none() | st.integers(0, 10).map(lambda minute: NIGHT + minute * MINUTE),
    uid=st.none() | st.sampled_from([0, 7]),
)


@given(st.lists(FILES, unique_by=lambda each: each.path))
def test_every_file_that_is_gone_or_changed_is_in_one_event(files: list[FileDrift]) -> None:
    counted = [each for each in files if each.kind in {"missing", "modified"}]
    found = events(lost(*files), {})
    assert sum(event.files for event in found) == len(counted)
    assert {name for event in found for name in event.distributions} == {
        name for each in counted for name in each.owners
    }
