from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.profile import Profile
from envforge.model.snapshot import BuiltFor, Snapshot
from envforge.model.state import Distribution, FileRow, Origin
from envforge.store import profiles, snapshots
from envforge.store.encoding import dump_files, dump_snapshot, load_files, load_snapshot
from envforge.store.layout import Home

HERE = Path("1.json")
texts = st.text(max_size=12)
maybe = st.none() | texts
numbers = st.integers(min_value=0, max_value=2**63)
origins = st.builds(Origin, kind=st.sampled_from(["sdist", "git", "path"]), url=maybe, sha256=maybe, commit=maybe)
distributions = st.builds(
    Distribution,
    name=texts,
    version=texts,
    build=maybe,
    index=maybe,
    file=maybe,
    url=maybe,
    sha256=maybe,
    size=st.none() | numbers,
    requested=st.booleans(),
    contents=maybe,
    record=maybe,
    installer=maybe,
    requires=st.lists(texts, max_size=3).map(tuple),
    requires_python=maybe,
    origin=st.none() | origins,
)
rows = st.builds(
    FileRow,
    path=st.text(st.characters(), max_size=20),
    size=numbers,
    mtime=st.integers(min_value=-(2**63), max_value=2**63),
    inode=numbers,
    sha256=maybe,
    owners=st.lists(texts, max_size=3).map(tuple),
    link=maybe,
)


def a_snapshot(**changes: object) -> Snapshot:
    whole = Snapshot(
        environment="x",
        generation=2,
        step=1,
        step_name="vllm",
        made="2026-11-30T09:16:25Z",
        by="somebody",
        machine="box",
        driver=None,
        python="3.10.13",
        engine="uv 0.13.9",
        state={
            "numpy": Distribution(name="numpy", version="2.2.6", requires=("a>1", "b")),
            "a": Distribution(name="a", version="1"),
        },
        files=(
            FileRow(path="lib/b", size=1, mtime=2, inode=3, owners=("numpy",)),
            FileRow(path="lib/a", size=1, mtime=2, inode=3, sha256="00", link="b"),
        ),
        cards=(BuiltFor(uuid="GPU-1", name="V100", compute_capability="7.0"),),
    )  # fmt: skip
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home", tmp_path / "cache")
    made.ensure()
    return made


def test_a_snapshot_comes_back_with_its_files_only_when_asked(home: Home) -> None:
    written = snapshots.write(home, a_snapshot(), "lock-version = '1.0'\n")
    assert written.lock == "pylock.1.toml"
    assert snapshots.lock_path(home, "x", 2, 1).read_text() == "lock-version = '1.0'\n"
    assert snapshots.read(home, "x", 2, 1) == dataclasses.replace(written, files=())
    with_files = snapshots.read(home, "x", 2, 1, files=True)
    assert with_files == dataclasses.replace(written, files=tuple(sorted(written.files, key=lambda row: row.path)))


def test_a_snapshot_of_before_cards_were_kept_has_none(home: Home) -> None:
    snapshots.write(home, a_snapshot(), None)
    place = snapshots.path(home, "x", 2, 1)
    data = json.loads(place.read_text(encoding="utf-8"))
    del data["cards"]
    place.write_text(json.dumps(data), encoding="utf-8")
    assert snapshots.read(home, "x", 2, 1).cards == ()


@pytest.mark.parametrize("cards", [3, "abc", [3], [{}], [{"uuid": 1, "name": "a", "compute_capability": "7.0"}]])
def test_cards_that_are_none_are_damage(home: Home, cards: object) -> None:
    snapshots.write(home, a_snapshot(), None)
    place = snapshots.path(home, "x", 2, 1)
    place.write_text(json.dumps({**json.loads(place.read_text(encoding="utf-8")), "cards": cards}), encoding="utf-8")
    with pytest.raises(EnvforgeError) as caught:
        snapshots.read(home, "x", 2, 1)
    assert caught.value.code == "corrupt-record"


def test_numbers_and_latest_go_by_number_not_by_text(home: Home) -> None:
    assert snapshots.latest(home, "x", 2) is None
    for step in (10, 9, 0):
        snapshots.write(home, a_snapshot(step=step), None)
    assert snapshots.numbers(home, "x", 2) == (0, 9, 10)
    latest = snapshots.latest(home, "x", 2)
    assert latest is not None
    assert latest.id == "x/2.10"


def test_nothing_but_whole_files_lies_there(home: Home) -> None:
    snapshots.write(home, a_snapshot(), "x")
    snapshots.write(home, a_snapshot(by="another"), "y")
    there = sorted(path.name for path in snapshots.folder(home, "x", 2).iterdir())
    assert there == ["1.files.json", "1.json", "pylock.1.toml"]
    assert snapshots.read(home, "x", 2, 1).by == "another"


def test_a_missing_snapshot_names_those_that_are_there(home: Home) -> None:
    snapshots.write(home, a_snapshot(), None)
    with pytest.raises(EnvforgeError, match=r"x/2\.7") as caught:
        snapshots.read(home, "x", 2, 7)
    assert caught.value.hint is not None
    assert "x/2.1" in caught.value.hint


@given(state=st.dictionaries(texts, distributions, max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
def test_any_state_comes_back(state: dict[str, Distribution]) -> None:
    whole = a_snapshot(state=state, files=())
    assert load_snapshot(dump_snapshot(whole), HERE) == whole


@given(files=st.lists(rows, max_size=5))
@settings(max_examples=60)
def test_any_table_comes_back_sorted_and_one_row_a_line(files: list[FileRow]) -> None:
    text = dump_files(files)
    assert load_files(text, HERE) == tuple(sorted(files, key=lambda row: row.path))
    assert text.count("\n") == max(len(files), 1) + 2
    assert dump_files(load_files(text, HERE)) == text


def test_the_order_of_the_state_does_not_matter() -> None:
    whole = a_snapshot()
    turned = a_snapshot(state=dict(reversed(list(whole.state.items()))), files=tuple(reversed(whole.files)))
    assert dump_snapshot(turned) == dump_snapshot(whole)
    assert dump_files(turned.files) == dump_files(whole.files)


def test_one_changed_version_is_one_changed_line() -> None:
    before = a_snapshot()
    after = a_snapshot(state={**before.state, "a": Distribution(name="a", version="2")})
    changed = set(dump_snapshot(before).splitlines()) ^ set(dump_snapshot(after).splitlines())
    assert {line.strip() for line in changed} == {'"version": "1"', '"version": "2"'}


def test_a_newer_schema_is_exit_2_saying_so(home: Home) -> None:
    snapshots.write(home, a_snapshot(), None)
    path = snapshots.folder(home, "x", 2) / "1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))
    with pytest.raises(UsageError, match="newer") as caught:
        snapshots.read(home, "x", 2, 1)
    assert caught.value.code == "newer-record"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "1"}', '{"schema": 1}', "[" * 100_000,
    '{"schema": 1, "distributions": []}', '{"schema": 1, "distributions": {"a": 3}}'])  # fmt: skip
def test_a_corrupt_snapshot_names_its_file_and_what_to_do(home: Home, text: str) -> None:
    snapshots.write(home, a_snapshot(), None)
    (snapshots.folder(home, "x", 2) / "1.json").write_text(text)
    with pytest.raises(EnvforgeError, match=r"1\.json") as caught:
        snapshots.latest(home, "x", 2)
    assert caught.value.code == "corrupt-record"
    assert caught.value.hint


@pytest.mark.parametrize("name", ["environment", "generation", "distributions", "made"])
def test_a_missing_field_is_corrupt(name: str) -> None:
    data = json.loads(dump_snapshot(a_snapshot()))
    del data[name]
    with pytest.raises(EnvforgeError) as caught:
        load_snapshot(json.dumps(data), HERE)
    assert caught.value.code == "corrupt-record"


@pytest.mark.parametrize("field", [{"environment": 1}, {"generation": "2"}, {"distributions": {"a": {"name": "a"}}},
    {"distributions": {"a": {"name": "a", "version": "1", "requires": "abc"}}}])  # fmt: skip
def test_a_field_of_the_wrong_type_is_corrupt(field: dict[str, object]) -> None:
    data = {**json.loads(dump_snapshot(a_snapshot())), **field}
    with pytest.raises(EnvforgeError) as caught:
        load_snapshot(json.dumps(data), HERE)
    assert caught.value.code == "corrupt-record"


@pytest.mark.parametrize(
    "row", ["[]", '["a"]', '["a", "1", 2, 3, null, [], null]', "7", "[1, 1, 2, 3, null, [], null]"]
)
def test_a_broken_row_is_corrupt(row: str) -> None:
    with pytest.raises(EnvforgeError) as caught:
        load_files(f'{{"schema": 1, "files": [{row}]}}', HERE)
    assert caught.value.code == "corrupt-record"


def test_the_profile_is_kept_as_text(home: Home) -> None:
    profiles.write(home, "x", 2, Profile(name="x", source="x.yaml", text="schema: 1\nname: é\n"))
    assert profiles.text(home, "x", 2) == "schema: 1\nname: é\n"
    with pytest.raises(EnvforgeError) as caught:
        profiles.text(home, "x", 3)
    assert caught.value.code == "record-not-found"
    profiles.path(home, "x", 2).write_bytes(b"\xff")
    with pytest.raises(EnvforgeError) as caught:
        profiles.text(home, "x", 2)
    assert caught.value.code == "corrupt-record"
