from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.wheels import Wheel
from probe.conftest import Install
from probe.recorded import Recorded, clean, snapshot_of

from envforge.model.state import Distribution, FileRow, Observation
from envforge.probe import hashing
from envforge.probe.drift import compare, expected
from envforge.rules.drift import findings
from envforge.rules.events import events

TINY = Wheel(
    name="Tiny.Thing",
    version="1.0+cu126",
    build="3",
    files={"tiny_thing/data.txt": "data\n", "tiny_thing/sub/deep.py": "deep = 1\n"},
    scripts={"tiny": "tiny_thing:main"},
)
OTHER = Wheel(name="other", version="1")

Ids = list[tuple[str, str]]
Fresh = Callable[..., Recorded]


def ids(recorded: Recorded, *, deep: bool = False) -> Ids:
    drift = recorded.deep() if deep else recorded.quick()
    return [(each.id, each.subject) for each in findings(drift)]


def tamper(file: Path) -> None:
    """Another byte in place, with size and mtime put back."""
    facts = file.stat()
    data = file.read_bytes()
    with file.open("r+b") as stream:
        stream.write(bytes([data[0] ^ 1]))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.fixture
def fresh(venv: Path, install: Install) -> Fresh:
    def make(*wheels: Wheel, pip: bool = False) -> Recorded:
        install(venv, *(wheels or (TINY, OTHER)), pip=pip)
        return Recorded.of(venv)

    return make


@pytest.mark.parametrize("pip", [False, True])
def test_a_fresh_environment_is_as_recorded_also_after_its_bytecode_was_compiled(
    fresh: Fresh, venv: Path, *, pip: bool
) -> None:
    recorded = fresh(pip=pip)
    assert clean(recorded.quick())
    assert clean(recorded.deep())
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "compileall", "-q", "-f", venv / "lib"], check=True)
    subprocess.run([python, "-c", "import tiny_thing.sub.deep, other"], check=True)
    assert clean(recorded.quick())
    assert clean(recorded.deep())
    assert recorded.seen.keys() == set(hashing.digests(venv, recorded.seen))
    assert events(recorded.deep(), {}) == ()


def test_bytecode_that_a_record_hashes_may_be_compiled_anew(fresh: Fresh, venv: Path, site: Path) -> None:
    cached = f"hashed/__pycache__/one.{sys.implementation.cache_tag}.pyc"
    recorded = fresh(Wheel(name="hashed", version="1", files={"hashed/one.py": "", cached: "stale"}))
    subprocess.run([venv / "bin" / "python", "-c", "import hashed.one"], check=True)
    (site / cached).write_bytes(b"compiled")
    assert clean(recorded.deep())
    (site / cached).unlink()
    assert clean(recorded.deep())


def test_a_deleted_folder_is_files_of_its_distribution(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    shutil.rmtree(site / "tiny_thing")
    drift = recorded.quick()
    (found,) = findings(drift)
    assert (found.id, found.subject, found.evidence["count"]) == ("file-missing", "tiny-thing", 3)
    assert {file.when for file in drift.files} == {site.stat().st_mtime_ns}
    (event,) = events(drift, {os.getuid(): "x"})
    assert (event.distributions, event.files, event.by) == (("tiny-thing",), 3, None)


def test_a_deleted_dist_info_is_a_missing_distribution(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    (info,) = site.glob("Tiny*.dist-info")
    count = sum(1 for _ in info.iterdir())
    shutil.rmtree(info)
    drift = recorded.quick()
    (found,) = findings(drift)
    assert (found.id, found.subject, found.evidence["count"]) == ("package-missing", "tiny-thing", count)
    assert drift.missing == ("tiny-thing",)
    assert events(drift, {})[0].files == count


def test_a_removed_distribution_is_one_finding(fresh: Fresh, site: Path, venv: Path) -> None:
    recorded = fresh()
    (info,) = site.glob("Tiny*.dist-info")
    for path in (info, site / "tiny_thing"):
        shutil.rmtree(path)
    (venv / "bin" / "tiny").unlink()
    assert ids(recorded) == [("package-missing", "tiny-thing")]


def test_an_edit_shows_at_once_and_one_with_size_and_mtime_put_back_in_a_deep_look(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    tamper(site / "tiny_thing" / "data.txt")
    assert clean(recorded.quick())
    assert ids(recorded, deep=True) == [("file-modified", "tiny-thing")]
    (file,) = recorded.deep().files
    assert file.expected is not None
    assert file.actual is not None
    assert file.expected != file.actual
    assert file.when == (site / "tiny_thing" / "data.txt").stat().st_ctime_ns
    os.utime(site / "tiny_thing" / "data.txt")
    assert ids(recorded) == [("file-modified", "tiny-thing")]


def test_a_touched_file_with_the_same_bytes_is_no_drift(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    data = site / "tiny_thing" / "data.txt"
    os.utime(data, ns=(1, 1))
    copy = data.with_name("copy")
    shutil.copy(data, copy)
    copy.replace(data)
    assert clean(recorded.quick())


def test_a_script_that_was_edited_is_a_file_and_no_other_distribution(fresh: Fresh, venv: Path) -> None:
    recorded = fresh()
    with (venv / "bin" / "tiny").open("a") as stream:
        stream.write("# more\n")
    assert ids(recorded) == [("file-modified", "tiny-thing")]


def test_a_record_that_was_made_to_fit_gives_itself_away(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    (record,) = site.glob("Tiny*.dist-info/RECORD")
    with (site / "tiny_thing" / "data.txt").open("r+") as stream:
        stream.write("DATA")
    lines = record.read_text().splitlines()
    record.write_text("\n".join(line.replace("data.txt,sha256=", "data.txt,sha256=AA") for line in lines) + "\n")
    (found,) = findings(recorded.deep())
    assert (found.id, found.subject) == ("package-changed", "tiny-thing")
    assert set(found.evidence["differs"]) == {"contents", "RECORD"}
    assert record.relative_to(recorded.prefix).as_posix() in found.evidence["paths"]


def test_a_record_is_no_witness_once_it_was_touched(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    path = (site / "tiny_thing" / "data.txt").relative_to(recorded.prefix).as_posix()
    assert expected(recorded.prefix, recorded.snapshot)[path] is not None
    (record,) = site.glob("Tiny*.dist-info/RECORD")
    record.write_text(record.read_text() + "\n")
    assert expected(recorded.prefix, recorded.snapshot)[path] is None
    record.unlink()
    assert expected(recorded.prefix, recorded.snapshot, {path}) == {path: None}


def test_what_is_expected_is_what_lies_there(fresh: Fresh, venv: Path) -> None:
    recorded = fresh()
    known = expected(venv, recorded.snapshot)
    assert None not in known.values()
    assert known == hashing.digests(venv, known)
    few = dict(list(known.items())[::7])
    assert expected(venv, recorded.snapshot, few.keys()) == few


def test_another_version_installed_behind_the_back(fresh: Fresh, venv: Path, install: Install) -> None:
    recorded = fresh()
    install(venv, replace(OTHER, version="2", files={"other/new.py": ""}), pip=True)
    drift = recorded.quick()
    (found,) = findings(drift)
    assert (found.id, found.subject) == ("package-changed", "other")
    assert found.evidence["differs"]["version"] == {"recorded": "1", "found": "2"}
    assert found.message.startswith("`other` 1 was recorded, 2 is installed")
    (event,) = events(drift, {os.getuid(): "x"})
    assert (event.distributions, event.by, event.installer) == (("other",), "x", "pip")
    assert event.text.endswith("UTC, pip, by x")


def test_another_build_of_the_same_version(fresh: Fresh, venv: Path, install: Install) -> None:
    recorded = fresh()
    built = replace(OTHER, build="9", files={"other/built.py": ""})
    subprocess.run(
        [Path(sys.executable).parent / "uv", "pip", "uninstall", "-q", "-p", venv / "bin" / "python", "other"],
        check=True,
    )
    install(venv, built)
    (found,) = findings(recorded.quick())
    assert (found.id, set(found.evidence["differs"])) == ("package-changed", {"build", "contents", "RECORD"})


def test_a_distribution_nobody_recorded(fresh: Fresh, venv: Path, install: Install) -> None:
    recorded = fresh(TINY)
    install(venv, OTHER, pip=True)
    drift = recorded.quick()
    (found,) = findings(drift)
    assert (found.id, found.subject, found.evidence["installer"]) == ("package-extra", "other", "pip")
    assert drift.infos["other"][1:] == (os.getuid(), "pip")


def test_a_path_of_two_owners_is_as_the_snapshot_has_it(fresh: Fresh, site: Path) -> None:
    one = Wheel(name="one", version="1", files={"shared/__init__.py": "one = 1\n"})
    two = Wheel(name="two", version="1", files={"shared/__init__.py": "two = 2\n"})
    recorded = fresh(one, two)
    assert clean(recorded.deep())
    (site / "shared" / "__init__.py").write_text("one = 1\n")
    assert ids(recorded) == [("file-modified", "one"), ("file-modified", "two")]


def test_a_snapshot_that_knows_better_than_a_record_counts_first(fresh: Fresh, site: Path) -> None:
    recorded = fresh(replace(OTHER, record="wrong"))
    assert {id_ for id_, _ in ids(recorded, deep=True)} == {"file-modified"}
    told = hashing.digests(recorded.prefix, [row.path for row in recorded.snapshot.files])
    rows = tuple(
        row if row.link is not None else replace(row, sha256=told[row.path]) for row in recorded.snapshot.files
    )
    assert clean(replace(recorded, snapshot=replace(recorded.snapshot, files=rows)).deep())


def test_what_lies_in_a_folder_that_cannot_be_listed_is_not_known_to_be_gone(tmp_path: Path) -> None:
    rows = [FileRow(path=f"pack/{name}", size=1, mtime=1, inode=1, owners=(name,)) for name in "ab"]
    rows.append(FileRow(path="other", size=1, mtime=1, inode=1))
    before = snapshot_of(Observation(state={}, files=tuple(rows)))
    drift = compare(tmp_path, before, Observation(state={}, unreadable={"pack": "permission denied"}), {})
    assert [(file.path, file.kind, file.owners) for file in drift.files] == [
        ("other", "missing", ()),
        ("pack", "unreadable", ("a", "b")),
    ]
    assert [(each.id, each.severity.value, each.subject) for each in findings(drift)] == [
        ("file-missing", "error", "other"),
        ("file-modified", "warning", "a"),
        ("file-modified", "warning", "b"),
    ]


def test_links_and_kinds_count(fresh: Fresh, venv: Path, site: Path) -> None:
    recorded = fresh()
    python = venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/bin/true")
    data = site / "tiny_thing" / "data.txt"
    data.unlink()
    data.symlink_to("sub/deep.py")
    deep = site / "tiny_thing" / "sub" / "deep.py"
    deep.unlink()
    os.mkfifo(deep)
    assert {file.path.rpartition("/")[2]: file.kind for file in recorded.deep().files} == {
        "python": "modified",
        "data.txt": "modified",
        "deep.py": "modified",
    }


def test_files_that_nobody_owns_are_told_one_by_one(fresh: Fresh, venv: Path) -> None:
    recorded = fresh()
    (venv / "bin" / "activate.csh").unlink()
    (venv / "pyvenv.cfg").write_text("home = /elsewhere\n")
    (venv / "notes.txt").write_text("mine\n")
    assert ids(recorded) == [("file-missing", "bin/activate.csh"), ("file-modified", "pyvenv.cfg")]
    assert [file.path for file in recorded.quick().files if file.kind == "extra"] == ["notes.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_may_not_be_listed_is_one_warning(fresh: Fresh, site: Path) -> None:
    recorded = fresh()
    folder = site / "tiny_thing"
    folder.chmod(0)
    try:
        (found,) = findings(recorded.quick())
        assert (found.id, found.severity, found.subject) == ("file-modified", "warning", "tiny-thing")
    finally:
        folder.chmod(0o700)


def test_an_environment_that_is_gone_is_missing_distributions_and_files(fresh: Fresh, venv: Path) -> None:
    recorded = fresh()
    shutil.rmtree(venv)
    assert {id_ for id_, _ in ids(recorded, deep=True)} == {"package-missing", "file-missing"}


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.text(st.sampled_from("ab/."), min_size=1, max_size=6).map("lib/".__add__)
ROWS = st.builds(
    FileRow,
    path=PATHS,
    size=st.integers(0, 9),
    mtime=st.integers(0, 9),
    inode=st.integers(0, 9),
    sha256=st.none() | st.just("00"),
    owners=st.lists(NAMES, unique=True, max_size=2).map(tuple),
    link=st.none() | st.just("target"),
)
DISTRIBUTIONS = st.builds(
    Distribution,
    name=NAMES,
    version=st.sampled_from(["1", "2"]),
    build=st.none() | st.just("1"),
    index=st.none() | st.just("pypi"),
    contents=st.none() | st.just("00"),
    record=st.none() | st.just("11"),
)
OBSERVATIONS = st.builds(
    Observation,
    state=st.lists(DISTRIBUTIONS).map(lambda found: {each.name: each for each in found}),
    files=st.lists(ROWS, unique_by=lambda row: row.path).map(tuple),
)


@given(OBSERVATIONS)
def test_a_state_does_not_differ_from_itself(tmp_path_factory: pytest.TempPathFactory, seen: Observation) -> None:
    drift = compare(Path("/nowhere"), snapshot_of(seen), seen, {})
    assert clean(drift)
    assert (findings(drift), events(drift, {})) == ((), ())


@given(OBSERVATIONS, OBSERVATIONS)
def test_whatever_differs_is_told_without_an_error(one: Observation, other: Observation) -> None:
    drift = compare(Path("/nowhere"), snapshot_of(one), other, {})
    told = [(each.id, each.subject, each.aspect) for each in findings(drift)]
    assert len(told) == len(set(told))
    assert {*drift.missing, *drift.extra, *drift.changed} == {
        subject for id_, subject, _ in told if id_.startswith("package-")
    }
    events(drift, {})
