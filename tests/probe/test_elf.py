from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from kit.elf import Elf

from envforge.model import native
from envforge.model.native import GpuCode
from envforge.probe import elf

WHOLE = Elf(
    soname="libone.so.1",
    needs=("libc.so.6", "libtwo.so"),
    rpath="$ORIGIN/../two:/opt/lib",
    wants=("two", "printf@GLIBC_2.2.5@libc.so.6", "stat@GLIBC_2.33@libc.so.6"),
    weak=("perhaps", "old@GLIBC_2.0@libold.so"),
    offers=("one", "uno@ONE_1"),
    code=("sm_70", "ptx_80", "sm_90a", "sm_100f", "sm_70"),
)


def read(tmp_path: Path, data: bytes) -> native.Elf:
    path = tmp_path / "object.so"
    path.write_bytes(data)
    return elf.read(str(path))


def test_all_that_a_loader_looks_at_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE.bytes())

    assert found.trouble is None
    assert (found.kind, found.machine, found.soname) == ("library", os.uname().machine, "libone.so.1")
    assert found.needed == ("libc.so.6", "libtwo.so")
    assert (found.rpath, found.runpath) == (("$ORIGIN/../two", "/opt/lib"), ())
    wanted = {(name, group.version, group.library) for group in found.wants for name in group.each()}
    assert wanted == {
        ("two", None, None),
        ("printf", "GLIBC_2.2.5", "libc.so.6"),
        ("stat", "GLIBC_2.33", "libc.so.6"),
    }
    assert {(name, group.version) for group in found.offers for name in group.each()} == {
        ("one", None),
        ("uno", "ONE_1"),
    }
    assert dict(found.needs) == {"libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.33"), "libold.so": ("GLIBC_2.0",)}
    assert found.defines == ("ONE_1",)


def test_gpu_code_is_told_once_for_each_kind_architecture_and_variant(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE.bytes()).code == (
        GpuCode(kind="elf", arch=70),
        GpuCode(kind="elf", arch=90, variant="a"),
        GpuCode(kind="elf", arch=100, variant="f"),
        GpuCode(kind="ptx", arch=80),
    )
    assert [code.name for code in read(tmp_path, WHOLE.bytes()).code] == ["sm_70", "sm_90a", "sm_100f", "ptx_80"]


def test_code_without_a_kernel_is_none(tmp_path: Path) -> None:
    found = read(tmp_path, Elf(code=("sm_52!", "ptx_52!", "sm_80")).bytes())

    assert [code.name for code in found.code] == ["sm_80"]


def test_a_program_and_a_library_are_told_apart(tmp_path: Path) -> None:
    assert read(tmp_path, Elf(program=True).bytes()).kind == "program"
    assert read(tmp_path, Elf().bytes()).kind == "library"


def test_another_architecture_is_named(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    found = read(tmp_path, Elf(machine=other).bytes())

    assert (found.trouble, found.machine) == (None, other)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is no ELF file"),
        (b"import this\n" * 20, "it is no ELF file"),
        (b"\x7fELF\x02\x01\x01", "it is truncated: it has no whole header"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "it is a 32-bit file"),
        (b"\x7fELF\x02\x02\x01" + bytes(100), "it is a big-endian file"),
    ],
)
def test_what_is_no_file_of_this_kind_says_so(tmp_path: Path, data: bytes, why: str) -> None:
    assert read(tmp_path, data).trouble == why


def test_every_truncation_is_told_and_none_is_an_error(tmp_path: Path) -> None:
    data = WHOLE.bytes()

    for size in range(4, len(data) - 1, 11):
        assert read(tmp_path, data[:size]).trouble is not None, size


def test_a_file_with_any_byte_changed_is_no_error(tmp_path: Path) -> None:
    data = WHOLE.bytes()

    assert {type(read(tmp_path, data[:at] + b"\xff" + data[at + 1 :])) for at in range(0, len(data), 7)} == {native.Elf}


def test_a_table_larger_than_any_is_not_read(tmp_path: Path) -> None:
    data = bytearray(WHOLE.bytes())
    (start,) = struct.unpack_from("<Q", data, 40)
    struct.pack_into("<Q", data, start + 64 + 32, 1 << 40)  # the size of the first section, .dynsym
    path = tmp_path / "huge.so"
    path.write_bytes(data)
    os.truncate(path, 1 << 41)  # sparse

    assert elf.read(str(path)).trouble == f"its .dynsym of {1 << 40} bytes is too large"


def test_neither_links_nor_pipes_are_opened(tmp_path: Path) -> None:
    (tmp_path / "real.so").write_bytes(WHOLE.bytes())
    (tmp_path / "link.so").symlink_to("real.so")
    os.mkfifo(tmp_path / "pipe.so")

    for name in ("link.so", "pipe.so", "absent.so"):
        assert not elf.is_elf(str(tmp_path / name))
        assert elf.read(str(tmp_path / name)).trouble is not None


def test_the_interpreter_that_runs_this_is_read(tmp_path: Path) -> None:
    found = elf.read(os.path.realpath("/proc/self/exe"))

    assert found.trouble is None
    assert any(name.startswith("libc.so") for name in found.needed)
    assert any(version and version.startswith("GLIBC_") for group in found.wants for version in [group.version])
