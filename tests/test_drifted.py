"""What befalls an environment and the cache that it came from: the audit names it, a rebuild heals it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.check import ended
from kit.cli import Answer, Cli
from kit.index import Index, Server, serve
from kit.wheels import Wheel

SIX = Wheel(name="six", version="1.0.0")
LIAR = Wheel(name="liar", version="1.0.0", record="wrong")
SHARED = "shared/data.txt"
FIRST = Wheel(name="first", version="1.0.0", files={SHARED: "first\n", "both/same.txt": "same\n"})
SECOND = Wheel(name="second", version="1.0.0", files={SHARED: "second\n", "both/same.txt": "same\n"})
IGNORE = [{"id": "file-clobbered", "because": "both are read by nobody"}]


def write(cli: Cli, server: Server, steps: Sequence[Any]) -> None:
    cli.profile(server.url("pypi"), steps, ignore=IGNORE)


def install(*names: str) -> dict[str, Any]:
    return {"name": "-".join(names), "install": [*names]}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cli, Server]]:
    """A home, and an index on which all that these tests need lies."""
    with serve({"pypi": Index(artefacts=[SIX, LIAR, FIRST, SECOND])}) as server:
        yield Cli(root=tmp_path_factory.mktemp("drifted")), server


def create(house: tuple[Cli, Server], name: str, *steps: Any) -> Path:
    """The environment ``name``; its site-packages."""
    cli, server = house
    write(cli, server, steps)
    ended(cli.run("create", "demo", "--name", name))
    return cli.site(name)


def told(answer: Answer, severity: str = "error") -> set[tuple[str, str]]:
    return {(each["id"], each["subject"]) for each in answer.document["findings"] if each["severity"] == severity}


def in_place(path: Path, old: bytes, new: bytes) -> None:
    """Other bytes of the same length, with the times of before: only a hash tells."""
    facts, content = path.stat(), path.read_bytes()
    assert old in content
    assert len(old) == len(new)
    with path.open("r+b") as stream:
        stream.write(content.replace(old, new))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_a_rebuild_believes_no_file_of_the_cache(house: tuple[Cli, Server]) -> None:
    site = create(house, "poisoned", install("six"), install("liar"))
    cli, server = house
    if (site / "six/__init__.py").stat().st_nlink == 1:
        pytest.skip("files are no hard links on this file system: nothing is shared")
    in_place(site / "six/__init__.py", b"1.0.0", b"6.6.6")
    in_place(site / "liar/__init__.py", b"1.0.0", b"6.6.6")
    assert {("file-modified", "six"), ("file-modified", "liar")} <= told(ended(cli.run("audit", "poisoned"), 3))
    shutil.rmtree(cli.home / "cache/known")  # without it every file of a wheel would be new, and right
    server.forget()
    answer = ended(cli.run("rebuild", "poisoned"))
    assert "damaged copy of `six`" in answer.stderr
    assert "damaged copy of `liar`" in answer.stderr
    assert {each.name for each in server.requests("file")} == {SIX.filename, LIAR.filename}
    for name in ("six", "liar"):
        assert (cli.site("poisoned") / name / "__init__.py").read_text() == '__version__ = "1.0.0"\n'
    assert told(ended(cli.run("audit", "poisoned", "--deep"))) == set()
    server.forget()
    ended(cli.run("rebuild", "poisoned"))
    assert not server.requests("file")


def test_a_record_that_lies_is_seen_through_after_any_step_and_in_any_environment(house: tuple[Cli, Server]) -> None:
    for name in ("lied", "lied-again"):
        create(house, name, install("liar"), install("six"))
        assert told(ended(house[0].run("audit", name, "--deep"))) == set()


def test_of_two_wheels_with_one_path_the_recorded_one_wins_again(house: tuple[Cli, Server]) -> None:
    site = create(house, "clobbered", install("first", "second"))
    cli, _ = house
    # The order of unpacking decides, and varies: let the records say that the other one won.
    other = b"second\n" if (site / SHARED).read_text() == "first\n" else b"first\n"
    sha256 = hashlib.sha256(other).hexdigest()
    record = cli.home / "records/clobbered/1"
    table = record / "snapshots/1.files.json"
    document = json.loads(table.read_text())
    (row,) = [each for each in document["files"] if each[0].endswith(SHARED)]
    row[4] = sha256
    table.write_text(json.dumps(document))
    (record / "contents" / sha256).write_bytes(other)
    assert {identity for identity, _ in told(ended(cli.run("audit", "clobbered", "--deep"), 3))} == {"file-modified"}
    ended(cli.run("rebuild", "clobbered"))
    site = cli.site("clobbered")
    assert (site / SHARED).read_bytes() == other
    if (site / "both/same.txt").stat().st_nlink > 1:
        for same in (cli.home / "cache/uv").rglob("both/same.txt"):
            in_place(same, b"same", b"evil")
        assert "damaged copy" in ended(cli.run("rebuild", "clobbered")).stderr
        assert (cli.site("clobbered") / "both/same.txt").read_text() == "same\n"
    assert told(ended(cli.run("audit", "clobbered", "--deep"))) == set()


def test_rows_of_a_record_that_lead_out(house: tuple[Cli, Server]) -> None:
    site = create(house, "led-out", install("six"))
    cli, _ = house
    record = site / "six-1.0.0.dist-info/RECORD"
    lines = record.read_text()
    record.unlink()  # it may be shared
    record.write_text(f"{lines}../../../../../outside.txt,sha256=AAAA,1\n/etc/passwd,,\n")
    for _ in range(2):
        answer = ended(cli.run("audit", "led-out"), 3)
        assert told(answer) == {("package-changed", "six")}
        assert ("record-missing", "six") in told(answer, "warning")
        assert "claims 2 files outside the environment (`../../../../../outside.txt`)" in answer.text
        said = next(each for each in answer.document["findings"] if each["id"] == "record-missing")
        assert "other tools" in said["remedy"]  # no repair of the environment takes it out of a wheel
    ended(cli.run("rebuild", "led-out"))
    assert ("record-missing", "six") not in told(ended(cli.run("audit", "led-out")), "warning")


def test_what_an_interrupted_pip_or_uv_leaves(house: tuple[Cli, Server]) -> None:
    site = create(house, "broken", install("six"), install("first"))
    cli, _ = house
    ended(cli.run("audit", "broken"))
    (site / "~ix").mkdir()
    (site / "~ix/__init__.py").write_text("")
    for _ in range(2):
        assert told(ended(cli.run("audit", "broken"), 3)) == {("leftover", "~ix")}
    (site / "six-1.0.0.dist-info/RECORD").unlink()
    (site / "first-1.0.0.dist-info/METADATA").unlink()
    (site / "first/__init__.py").unlink()
    found = told(ended(cli.run("audit", "broken"), 3))
    assert {
        ("leftover", "~ix"),
        ("record-missing", "six"),
        ("record-missing", "first"),
        ("file-missing", "first"),
    } <= found
    ended(cli.run("rebuild", "broken"))
    assert told(ended(cli.run("audit", "broken"))) == set()


STRANGE = [b"a name with blanks.py", b"two\nlines.py", b"latin-\xe9.py", "\N{SNOWMAN}.py".encode(), b"x" * 250 + b".py"]


def test_strange_names_of_files(house: tuple[Cli, Server]) -> None:
    names = [each.decode("utf-8", "surrogateescape") for each in STRANGE]
    code = (
        f"import os, six; [open(os.path.dirname(six.__file__).encode() + b'/' + n, 'w').close() for n in {STRANGE!r}]"
    )
    cli, server = house
    server.put(
        "pypi",
        Wheel(name="strange", version="1.0.0", files={f"strange/{each}": "x = 1\n" for each in (names[0], names[3])}),
    )
    site = create(house, "strange", install("strange", "six"), {"name": "more", "run": ["python", "-c", code]})
    for deep in ((), ("--deep",)):
        assert told(ended(cli.run("audit", "strange", *deep))) == set()
    (site / "six" / names[2]).unlink()
    (site / "six" / names[1]).write_text("x = 1\n")
    (site / "strange" / names[0]).unlink()
    answer = ended(cli.run("audit", "strange"), 3)
    assert ("file-missing", "strange") in told(answer)
    assert {identity for identity, _ in told(answer)} == {"file-missing", "file-modified"}
    plain = cli.run("history", "strange")
    assert plain.exit == 0, str(plain)
    ended(cli.run("rebuild", "strange"))
    assert told(ended(cli.run("audit", "strange"))) == set()
