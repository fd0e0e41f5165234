from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kit.wheels import Wheel

from envforge.model.state import FileRow, Observation
from envforge.probe.prefix import changed, look

Install = Callable[..., None]

TINY = Wheel(
    name="Tiny.Thing",
    version="1.0+cu126",
    build="3",
    requires=("other>=2", 'six ; extra == "x"'),
    python=">=3.8",
    files={
        "tiny_thing/data.txt": "data\n",
        "tiny_thing/a b.txt": "a comma\n",
        "Tiny_Thing-1.0+cu126.data/scripts/tool": "#!python\nprint('tool')\n",
        "Tiny_Thing-1.0+cu126.data/data/share/tiny/x.json": "{}\n",
    },
    scripts={"tiny": "tiny_thing:main"},
)


def rows(seen: Observation) -> dict[str, FileRow]:
    return {row.path: row for row in seen.files}


def everything(prefix: Path) -> set[str]:
    return {
        path.relative_to(prefix).as_posix()
        for path in prefix.rglob("*")
        if path.is_symlink() or (path.is_file() and "__pycache__" not in path.parts)
    }


def test_a_distribution_as_uv_installs_it(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    seen = look(venv)
    (dist,) = seen.state.values()
    assert (dist.name, dist.version, dist.build) == ("tiny-thing", "1.0+cu126", "3")
    assert dist.requires == ("other>=2", 'six ; extra == "x"')
    assert dist.requires_python == ">=3.8"
    assert (dist.installer, dist.requested) == ("uv", True)
    (record,) = site.glob("*.dist-info/RECORD")
    assert dist.record == hashlib.sha256(record.read_bytes()).hexdigest()
    assert not seen.clashes
    assert not seen.debris
    assert not seen.unreadable


def test_the_table_holds_every_file_and_hashes_only_what_no_record_hashes(
    venv: Path, site: Path, install: Install
) -> None:
    install(venv, TINY)
    seen = look(venv)
    table = rows(seen)
    assert set(table) == everything(venv)
    assert list(table) == sorted(table)
    assert seen.bytes == sum(row.size for row in seen.files)
    inside = site.relative_to(venv).as_posix()
    owned = table[f"{inside}/tiny_thing/a b.txt"]
    assert (owned.owners, owned.sha256) == (("tiny-thing",), None)
    for path in ("share/tiny/x.json", "bin/tool", "bin/tiny"):
        assert (table[path].owners, table[path].sha256) == (("tiny-thing",), None)
    (record,) = (row for path, row in table.items() if path.endswith("/RECORD"))
    assert record.sha256 == seen.state["tiny-thing"].record
    unowned = table["pyvenv.cfg"]
    assert unowned.owners == ()
    assert unowned.sha256 == hashlib.sha256((venv / "pyvenv.cfg").read_bytes()).hexdigest()
    facts = (venv / "pyvenv.cfg").stat()
    assert (unowned.size, unowned.mtime, unowned.inode) == (facts.st_size, facts.st_mtime_ns, facts.st_ino)
    assert table["bin/python"].link == str((venv / "bin/python").readlink())


@pytest.mark.parametrize("where", ["other", "a folder with blanks", "long" * 40])
def test_contents_depend_on_neither_prefix_nor_installer(
    venv: Path, install: Install, clean: dict[str, str], where: str
) -> None:
    install(venv, TINY)
    other = venv.parent / where / "venv"
    other.parent.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True, env=clean)
    install(other, TINY, pip=True)
    by_uv, by_pip = look(venv).state["tiny-thing"], look(other).state["tiny-thing"]
    assert by_pip.installer == "pip"
    assert by_uv.contents == by_pip.contents
    assert by_uv.record != by_pip.record


@pytest.mark.parametrize(
    "other",
    [
        replace(TINY, files={**TINY.files, "tiny_thing/data.txt": "datA\n"}),
        replace(TINY, files={**TINY.files, "tiny_thing/more.txt": ""}),
        replace(TINY, files={**TINY.files, "Tiny_Thing-1.0+cu126.data/scripts/tool": "#!python\nprint('loot')\n"}),
        replace(TINY, files={**TINY.files, "Tiny_Thing-1.0+cu126.data/data/share/tiny/x.json": "[]\n"}),
        replace(TINY, scripts={"tiny": "tiny_thing:other"}),
    ],
    ids=["changed", "added", "script", "data", "entry point"],
)
def test_contents_tell_another_build_at_equal_version(venv: Path, install: Install, other: Wheel) -> None:
    install(venv, TINY)
    before = look(venv).state["tiny-thing"].contents
    second = venv.parent / "second" / "venv"
    second.parent.mkdir()
    shutil.copytree(venv, second, symlinks=True)
    shutil.rmtree(next((second / "lib").glob("python*")) / "site-packages" / "tiny_thing")
    for info in (second / "lib").glob("python*/site-packages/*.dist-info"):
        shutil.rmtree(info)
    (second / "bin" / "tool").unlink()
    (second / "bin" / "tiny").unlink()
    install(second, other)
    assert look(second).state["tiny-thing"].contents != before


def test_bytecode_is_in_the_table_only_where_a_record_hashes_it(venv: Path, site: Path, install: Install) -> None:
    install(venv, replace(TINY, files={"tiny_thing/__pycache__/shipped.cpython-311.pyc": "no real bytecode"}))
    before = look(venv)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "compileall", "-q", site / "tiny_thing"], check=True)
    assert len(list((site / "tiny_thing" / "__pycache__").iterdir())) > 1
    after = look(venv)
    assert before.state == after.state
    assert set(rows(after)) == set(rows(before))
    assert [path for path in rows(after) if path.endswith(".pyc")] == [
        (site / "tiny_thing/__pycache__/shipped.cpython-311.pyc").relative_to(venv).as_posix()
    ]


def test_bytecode_that_pip_lists_without_a_hash_counts_for_nothing(venv: Path, install: Install) -> None:
    install(venv, TINY, pip=True)
    assert not [path for path in rows(look(venv)) if path.endswith(".pyc")]


def test_one_path_two_owners_other_bytes_is_a_clash(venv: Path, site: Path, install: Install) -> None:
    one = Wheel(name="nccl-cu11", version="1", files={"nvidia/lib.so": "eleven", "nvidia/__init__.py": ""})
    two = Wheel(name="nccl-cu12", version="1", files={"nvidia/lib.so": "twelve!", "nvidia/__init__.py": ""})
    install(venv, one, two)
    seen = look(venv)
    (clash,) = seen.clashes
    inside = site.relative_to(venv).as_posix()
    assert clash.path == f"{inside}/nvidia/lib.so"
    assert clash.declared == {
        "nccl-cu11": hashlib.sha256(b"eleven").hexdigest(),
        "nccl-cu12": hashlib.sha256(b"twelve!").hexdigest(),
    }
    assert clash.actual == hashlib.sha256(b"twelve!").hexdigest()
    shared = rows(seen)[f"{inside}/nvidia/__init__.py"]
    assert shared.owners == ("nccl-cu11", "nccl-cu12")
    assert shared.sha256 == hashlib.sha256(b"").hexdigest()
    (site / "nvidia/lib.so").unlink()
    (gone,) = look(venv).clashes
    assert gone.actual is None


def test_an_owner_without_a_hash_clashes_only_where_other_bytes_lie(venv: Path, site: Path, install: Install) -> None:
    install(venv, Wheel(name="one", version="1", files={"shared.txt": "one"}), Wheel(name="two", version="1"))
    record = site / "two-1.dist-info" / "RECORD"
    record.write_text(record.read_text() + "shared.txt,,3\n")
    assert not look(venv).clashes
    (site / "shared.txt").write_text("two")
    (clash,) = look(venv).clashes
    assert set(clash.declared) == {"one", "two"}
    assert clash.declared["two"] is None


@pytest.mark.parametrize("file", ["RECORD", "METADATA"])
def test_a_missing_record_or_metadata_is_debris(venv: Path, site: Path, install: Install, file: str) -> None:
    install(venv, TINY)
    (info,) = site.glob("*.dist-info")
    (info / file).unlink()
    seen = look(venv)
    (debris,) = seen.debris
    assert (debris.kind, debris.name, debris.missing) == ("record-missing", "tiny-thing", (file,))
    assert debris.path == info.relative_to(venv).as_posix()
    assert seen.state["tiny-thing"].version == "1.0+cu126"
    assert (seen.state["tiny-thing"].contents is None) is (file == "RECORD")


def test_an_empty_metadata_is_a_missing_one(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    (info,) = site.glob("*.dist-info")
    (info / "METADATA").write_bytes(b"")
    (debris,) = look(venv).debris
    assert debris.missing == ("METADATA",)


def test_tilde_folders_are_leftovers_and_no_distributions(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    (info,) = site.glob("*.dist-info")
    info.rename(site / "~iny_thing-1.0.dist-info")
    (site / "~iny_thing").mkdir()
    seen = look(venv)
    assert not seen.state
    assert [(item.kind, item.name) for item in seen.debris] == [
        ("leftover", "~iny_thing"),
        ("leftover", "~iny_thing-1.0.dist-info"),
    ]


def test_of_two_metadata_folders_of_one_name_the_older_is_a_leftover(venv: Path, site: Path, install: Install) -> None:
    install(venv, replace(TINY, version="1.0", files={}))
    shutil.copytree(site / "Tiny_Thing-1.0.dist-info", site / "kept")
    install(venv, replace(TINY, version="1.10", files={}))
    (site / "kept").rename(site / "Tiny_Thing-1.0.dist-info")
    seen = look(venv)
    assert seen.state["tiny-thing"].version == "1.10"
    (debris,) = seen.debris
    assert (debris.kind, debris.path.rpartition("/")[2]) == ("leftover", "Tiny_Thing-1.0.dist-info")


@pytest.mark.parametrize("row", ["../../../../../outside.txt", "/etc/passwd", "../../../../venv2/x"])
def test_rows_that_leave_the_prefix_are_told_and_not_followed(
    venv: Path, site: Path, install: Install, row: str
) -> None:
    install(venv, TINY)
    before = look(venv)
    (record,) = site.glob("*.dist-info/RECORD")
    record.write_text(record.read_text() + f"{row},sha256=AAAA,1\n")
    seen = look(venv)
    assert [(each.kind, each.name, each.rows) for each in seen.debris] == [("outside", "tiny-thing", (row,))]
    assert not seen.unreadable
    assert set(rows(seen)) == set(rows(before))
    assert seen.state["tiny-thing"].contents == before.state["tiny-thing"].contents


def test_a_symlink_out_of_the_prefix_is_a_row_and_not_entered(venv: Path, site: Path) -> None:
    outside = venv.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("x")
    (site / "way").symlink_to(outside)
    table = rows(look(venv))
    inside = site.relative_to(venv).as_posix()
    assert table[f"{inside}/way"].link == str(outside)
    assert not [path for path in table if "secret" in path]


def test_pipes_and_sockets_do_not_block(venv: Path, site: Path) -> None:
    os.mkfifo(site / "pipe")
    (site / "trap-1.0.dist-info").mkdir()
    os.mkfifo(site / "trap-1.0.dist-info" / "RECORD")
    seen = look(venv)
    inside = site.relative_to(venv).as_posix()
    assert "socket, pipe or device" in seen.unreadable[f"{inside}/pipe"]
    assert f"{inside}/pipe" not in rows(seen)


def test_a_look_through_the_symlink_of_an_environment_sees_the_same(venv: Path, install: Install) -> None:
    install(venv, TINY)
    link = venv.parent / "env"
    link.symlink_to("venv")
    assert look(link) == look(venv)


def test_nothing_is_written(venv: Path, install: Install) -> None:
    install(venv, TINY)
    before = look(venv)
    assert look(venv) == before
    assert changed(venv, before.files) == ()


@pytest.mark.parametrize("place", ["", "missing", "file"])
def test_what_is_no_environment_holds_nothing(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    seen = look(tmp_path / "missing" if not place else tmp_path / place)
    assert not seen.state


def test_odd_encodings_and_names_are_tolerated(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    (info,) = site.glob("*.dist-info")
    (info / "METADATA").write_bytes(
        b"Metadata-Version: 2.1\r\nName: tiny.thing\r\nAuthor: Jos\xe9\r\nVersion: 1.0\r\nRequires-Dist: a\r\n"
        b"  ; python_version < '4'\r\n\r\nbody\r\nRequires-Dist: not this\r\n"
    )
    odd = os.fsencode(site) + b"/odd-\xff.txt"
    Path(os.fsdecode(odd)).write_text("x")
    (info / "RECORD").write_bytes((info / "RECORD").read_bytes() + b"odd-\xff.txt,sha256=AA,1\nhalf a row\n,,\n")
    seen = look(venv)
    assert seen.state["tiny-thing"].requires == ("a ; python_version < '4'",)
    assert [row.owners for row in seen.files if "odd-" in row.path] == [("tiny-thing",)]


def test_an_egg_info_of_old_tools(venv: Path, site: Path) -> None:
    info = site / "old_tool-1.2-py3.11.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old-tool\nVersion: 1.2\n")
    (info / "requires.txt").write_text("six\n\n[fast]\ncython>=3\n\n[:python_version < '3']\nfutures\n")
    (info / "installed-files.txt").write_text("../old_tool.py\nPKG-INFO\n")
    (site / "old_tool.py").write_text("x = 1\n")
    (site / "single-2.0.egg-info").write_text("Metadata-Version: 1.0\nName: single\nVersion: 2.0\n")
    seen = look(venv)
    assert seen.state["old-tool"].requires == ("six", 'cython>=3 ; extra == "fast"', "futures ; (python_version < '3')")
    assert seen.state["old-tool"].contents is not None
    assert seen.state["single"].version == "2.0"
    assert not seen.debris
    (row,) = (row for row in seen.files if row.path.endswith("old_tool.py"))
    assert row.owners == ("old-tool",)
    assert row.sha256 == hashlib.sha256(b"x = 1\n").hexdigest()


def test_changed_names_what_was_edited_replaced_or_deleted(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    seen = look(venv).files
    edited, replaced, deleted = (site / "tiny_thing" / name for name in ("__init__.py", "a b.txt", "data.txt"))
    with edited.open("a") as stream:
        stream.write("#\n")
    facts = replaced.stat()
    copy = replaced.with_suffix(".new")
    copy.write_bytes(replaced.read_bytes())
    os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    copy.replace(replaced)
    deleted.unlink()
    expected = [path.relative_to(venv).as_posix() for path in (edited, replaced, deleted)]
    assert list(changed(venv, seen)) == expected


def test_a_quoted_row_is_one_path(venv: Path, site: Path, install: Install) -> None:
    install(venv, TINY)
    (site / "tiny_thing" / "a, b.txt").write_text("")
    (record,) = site.glob("*.dist-info/RECORD")
    before = look(venv)
    record.write_text(record.read_text() + '"tiny_thing/a, b.txt",sha256=AA,1\n')
    seen = look(venv)
    (row,) = (row for row in seen.files if row.path.endswith("a, b.txt"))
    assert (row.owners, row.sha256) == (("tiny-thing",), None)
    record.write_text(record.read_text().replace('"tiny_thing/a, b.txt",sha256=AA,1\n', ""))
    assert look(venv).state == before.state
