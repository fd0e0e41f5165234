from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from envforge.model.native import Asked, Compiled, Elf, GpuCode, Native, Symbols, Unfound, Unresolved
from envforge.store import elf_encoding, native_seen
from envforge.store.elf_cache import ElfCache
from envforge.store.layout import Home

WHOLE = Elf(
    kind="library",
    machine="x86_64",
    soname="libone.so.1",
    needed=("libc.so.6",),
    rpath=("$ORIGIN/../x",),
    runpath=("/opt",),
    wants=(Symbols(names="printf\nstat", version="GLIBC_2.33", library="libc.so.6"), Symbols(names="two")),
    offers=(Symbols(names="one"), Symbols(names="uno\ndos\udcff", version="ONE_1")),
    needs=(("libc.so.6", ("GLIBC_2.33",)),),
    defines=("ONE_1",),
    code=(GpuCode(kind="elf", arch=90, variant="a"), GpuCode(kind="ptx", arch=80)),
)
BROKEN = Elf(trouble="it is truncated")
BROUGHT = Compiled(path="vllm/_C.abi3.so", owner=None, code=WHOLE.code)


@pytest.mark.parametrize("value", [WHOLE, BROKEN])
def test_what_was_read_of_a_file_is_read_back(value: Elf) -> None:
    assert elf_encoding.load_elf(elf_encoding.dump_elf(value)) == value


def test_what_is_known_of_many_files_and_wheels_is_given_back_by_digest(tmp_path: Path) -> None:
    cache = ElfCache(tmp_path / "elf")
    many = {f"{number:064x}": BROKEN for number in range(1200)}
    cache.keep({"a": WHOLE, **many}, {"w": [BROUGHT]})

    assert cache.files(["a", "absent"]) == {"a": WHOLE}
    assert cache.files(many) == many
    assert cache.wheels() == {"w": (BROUGHT,)}


def test_an_absent_cache_knows_nothing_and_is_not_made_by_asking(tmp_path: Path) -> None:
    cache = ElfCache(tmp_path / "elf")

    assert (cache.files(["a"]), cache.wheels()) == ({}, {})
    cache.keep({}, {})
    assert not (tmp_path / "elf").exists()


def test_a_damaged_cache_knows_nothing_and_is_made_anew(tmp_path: Path) -> None:
    cache = ElfCache(tmp_path / "elf")
    cache.keep({"a": WHOLE}, {})
    (file,) = (tmp_path / "elf").iterdir()
    file.write_bytes(b"no table at all" * 100)

    assert cache.files(["a"]) == {}
    cache.keep({"a": WHOLE}, {})
    cache.keep({"a": WHOLE}, {})
    assert cache.files(["a"]) == {"a": WHOLE}


def test_a_row_that_cannot_be_understood_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    cache = ElfCache(tmp_path / "elf")
    cache.keep({"a": WHOLE, "b": WHOLE}, {"w": [BROUGHT]})
    (file,) = (tmp_path / "elf").iterdir()
    table = sqlite3.connect(file)
    table.execute("UPDATE files SET facts = x'00' WHERE sha256 = 'a'")
    table.execute("UPDATE wheels SET code = '[1]'")
    table.commit()
    table.close()

    assert cache.files(["a", "b"]) == {"b": WHOLE}
    assert cache.wheels() == {}


def test_what_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "elf").write_text("a file in the way")
    cache = ElfCache(tmp_path / "elf")
    cache.keep({"a": WHOLE}, {})

    assert cache.files(["a"]) == {}


NATIVE = Native(
    objects=(Compiled(path="a.so", owner="a", machine="x86_64", code=WHOLE.code), Compiled(path="b.so", owner=None)),
    unfound=(Unfound(path="a.so", owner="a", libraries=("l.so",), driver=True),),
    unresolved=(Unresolved(path="a.so", owner="a", symbols=("f",), library="l.so", provider="b.so", loaded=True),),
    asked=(Asked(symbol="f", library="l.so", found=("b.so",), lacking=("b.so",)),),
)


def test_what_was_found_in_a_generation_is_given_back_for_the_same_key_alone(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "cache")
    home.ensure()
    home.make_record("demo", 1)
    native_seen.write(home, "demo", 1, NATIVE, key="one")

    assert native_seen.read(home, "demo", 1, key="one") == NATIVE
    assert native_seen.read(home, "demo", 1, key="two") is None
    assert native_seen.read(home, "demo", 2, key="one") is None
    (home.record("demo", 1) / "native.json").write_text('{"schema": 1, "key": "one", "objects": [1]}')
    assert native_seen.read(home, "demo", 1, key="one") is None
