from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kit.elf import Elf

from envforge.model.native import Asked, Native, Unfound, Unresolved
from envforge.model.state import Distribution, FileRow
from envforge.probe import compiled, host_libraries, native

SITE = "lib/python3.11/site-packages"
LIBC = ("libc.so.6",)


def environment(
    root: Path,
    files: Mapping[str, tuple[str | None, Elf]],
    requires: Mapping[str, Sequence[str]] | None = None,
    asked: Sequence[tuple[str, str]] = (),
) -> Native:
    """``files``: path below site-packages -> owner and what lies there; ``requires``: owner -> requirements."""
    (root / "bin").mkdir(parents=True, exist_ok=True)
    (root / "bin/python").symlink_to(sys.executable)
    owners: dict[str, str | None] = {}
    for path, (owner, file) in files.items():
        place = root / SITE / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.bytes())
        owners[f"{SITE}/{path}"] = owner
    names = {owner for owner, _ in files.values() if owner is not None} | (requires or {}).keys()
    state = {
        name: Distribution(name=name, version="1", requires=tuple((requires or {}).get(name, ()))) for name in names
    }
    return native.look(root, compiled.read(root, owners), owners, state, asked)


def test_what_the_folders_of_the_rpath_the_host_and_python_provide_is_no_gap(tmp_path: Path) -> None:
    found = environment(
        tmp_path,
        {
            "one/_ext.so": (
                "one",
                Elf(
                    needs=("libtwo.so", *LIBC), rpath="$ORIGIN/../one.libs", offers=("PyInit__ext",),
                    wants=("two", "PyLong_FromLong", "printf"), weak=("nowhere",),
                ),
            ),
            "one.libs/libtwo.so": ("one", Elf(soname="libtwo.so", needs=LIBC, offers=("two",))),
        },
    )  # fmt: skip

    assert (found.unfound, found.unresolved) == ((), ())
    assert [each.path for each in found.objects] == [f"{SITE}/one.libs/libtwo.so", f"{SITE}/one/_ext.so"]


def test_a_runpath_counts_for_the_file_alone_and_an_rpath_for_all_that_it_loads(tmp_path: Path) -> None:
    def files(**how: str) -> dict[str, tuple[str | None, Elf]]:
        return {
            "one/_ext.so": ("one", Elf(needs=("libmid.so",), offers=("PyInit__ext",), wants=("mid",), **how)),  # type: ignore[arg-type]
            "libs/libmid.so": ("other", Elf(soname="libmid.so", needs=("libend.so",), offers=("mid",), wants=("end",))),
            "libs/libend.so": ("other", Elf(needs=(), offers=("end",))),  # without a SONAME only a folder leads to it
        }

    by_rpath = environment(tmp_path / "rpath", files(rpath="$ORIGIN/../libs"))
    by_runpath = environment(tmp_path / "runpath", files(runpath="$ORIGIN/../libs"))

    # The library itself says nowhere where its own lies, and is told in both.
    assert [each.path for each in by_rpath.unfound] == [f"{SITE}/libs/libmid.so"]
    assert [each.path for each in by_runpath.unfound] == [f"{SITE}/libs/libmid.so"]
    assert by_rpath.unresolved == ()


def test_a_library_that_what_it_requires_has_loaded_is_found_by_its_soname(tmp_path: Path) -> None:
    files = {
        "addon/_C.so": ("addon", Elf(needs=("libtorch.so",), offers=("PyInit__C",), wants=("at_empty",))),
        "torch/lib/libtorch.so": ("torch", Elf(soname="libtorch.so", offers=("at_empty",))),
    }

    assert environment(tmp_path / "with", files, {"addon": ["torch>=2; extra == 'x'"]}).unfound == ()
    (gap,) = environment(tmp_path / "without", files).unfound
    assert (gap.path, gap.libraries) == (f"{SITE}/addon/_C.so", ("libtorch.so",))


def test_what_torch_finds_of_nvidia_is_there_for_all_that_require_torch(tmp_path: Path) -> None:
    files = {
        "addon/_C.so": ("addon", Elf(needs=("libcublas.so.12",), wants=("cublasCreate",))),
        "nvidia/cublas/lib/libcublas.so.12": (
            "nvidia-cublas-cu12", Elf(soname="libcublas.so.12", offers=("cublasCreate",))
        ),
    }  # fmt: skip

    found = environment(tmp_path, files, {"addon": ["torch"], "torch": []})

    assert (found.unfound, found.unresolved) == ((), ())


def test_an_undefined_symbol_is_told_with_the_library_that_should_have_it(tmp_path: Path) -> None:
    found = environment(
        tmp_path,
        {
            "torch/_C.so": ("torch", Elf(needs=("libtorch_cuda.so",), rpath="$ORIGIN/lib", offers=("PyInit__C",))),
            "torch/lib/libtorch_cuda.so": (
                "torch",
                Elf(
                    soname="libtorch_cuda.so", needs=("libnccl.so.2", *LIBC), rpath="$ORIGIN/../../nvidia/nccl/lib",
                    wants=("ncclCommWindowDeregister", "ncclSend", "printf"),
                ),
            ),
            "nvidia/nccl/lib/libnccl.so.2": ("nccl", Elf(soname="libnccl.so.2", offers=("ncclSend", "ncclCommInit"))),
        },
        asked=[("ncclCommWindowDeregister", "libnccl.so.2"), ("ncclSend", "libnccl.so.2"), ("f", "libabsent.so")],
    )  # fmt: skip

    nccl = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
    assert found.unresolved == (
        Unresolved(
            path=f"{SITE}/torch/lib/libtorch_cuda.so", owner="torch", symbols=("ncclCommWindowDeregister",),
            library="libnccl.so.2", provider=nccl, provides="nccl", loaded=True,
        ),
    )  # fmt: skip
    assert found.asked == (
        Asked(symbol="ncclCommWindowDeregister", library="libnccl.so.2", found=(nccl,), lacking=(nccl,)),
        Asked(symbol="ncclSend", library="libnccl.so.2", found=(nccl,)),
        Asked(symbol="f", library="libabsent.so"),
    )


def test_a_version_that_the_hosts_libraries_lack_is_told(tmp_path: Path) -> None:
    wants = ("printf@GLIBC_2.2.5@libc.so.6", "printf@GLIBC_9.99@libc.so.6")
    found = environment(tmp_path, {"one/_ext.so": ("one", Elf(needs=LIBC, wants=wants, offers=("PyInit__ext",)))})

    (gap,) = found.unresolved
    assert (gap.symbols, gap.version, gap.library, gap.loaded) == (("printf",), "GLIBC_9.99", "libc.so.6", True)
    assert gap.provider is not None
    assert gap.provider.startswith("/")


def test_what_is_missing_is_told_once_and_not_by_its_symbols_too(tmp_path: Path) -> None:
    file = Elf(needs=("libabsent.so.1", *LIBC), wants=("absent_call",), offers=("PyInit__ext",))
    found = environment(tmp_path, {"one/_ext.so": ("one", file)})

    assert found.unfound == (Unfound(path=f"{SITE}/one/_ext.so", owner="one", libraries=("libabsent.so.1",)),)
    assert found.unresolved == ()


def test_a_driver_that_is_absent_hides_its_own_symbols_and_no_others(tmp_path: Path) -> None:
    # No host has a driver's library of this name.
    needs = ("libnvidia-kit-of-tests.so.1", *LIBC)
    file = Elf(needs=needs, wants=("cuMemAlloc_v2", "nvmlInit", "customer"), offers=("PyInit__ext",))
    found = environment(tmp_path, {"one/_ext.so": ("one", file)})

    assert [(gap.libraries, gap.driver) for gap in found.unfound] == [(needs[:1], True)]
    assert [gap.symbols for gap in found.unresolved] == [("customer",)]


def test_a_library_that_has_to_lie_in_the_environment_is_told_apart(tmp_path: Path) -> None:
    found = environment(
        tmp_path,
        {
            "a/older.so": ("a", Elf(needs=("libcublas.so.11",), rpath="$ORIGIN/../nvidia/cublas/lib")),
            "nvidia/cublas/lib/libcublas.so.12": ("nvidia-cublas-cu12", Elf(soname="libcublas.so.12")),
            "a/bundled.so": ("a", Elf(needs=("libz-1a2b3c4d.so.1",), rpath="$ORIGIN/../a.libs")),
            "a/own.so": ("a", Elf(needs=("libplugin.so.1",), rpath="$ORIGIN/../nvidia/cublas/lib:$ORIGIN/../a.libs")),
            "a/nowhere.so": ("a", Elf(needs=("libplugin.so.1",))),
        },
    )

    told = {gap.path.rpartition("/")[2]: gap.sought for gap in found.unfound}
    assert told == {"older.so": True, "bundled.so": True, "own.so": False, "nowhere.so": False}


def test_a_file_beside_what_is_imported_is_told_as_such(tmp_path: Path) -> None:
    files = {"a/variant.so": ("a", Elf(needs=LIBC, wants=("of_another_release",)))}

    assert [gap.loaded for gap in environment(tmp_path, files).unresolved] == [False]


def test_what_is_broken_or_for_another_machine_is_in_nobodys_way(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    root = tmp_path / "e"
    files = {
        "a/foreign.so": ("a", Elf(machine=other, needs=("libabsent.so",), wants=("f",))),
        "a/cut.so": ("a", Elf(soname="libcut.so", needs=("libabsent.so",))),
        "a/user.so": ("a", Elf(needs=("libcut.so",), runpath="$ORIGIN")),
    }
    environment(root, files)
    cut = root / SITE / "a/cut.so"
    cut.write_bytes(cut.read_bytes()[:-40])
    owners: dict[str, str | None] = {f"{SITE}/{path}": owner for path, (owner, _) in files.items()}
    found = native.look(root, compiled.read(root, owners), owners, {})

    assert [(each.path[-6:], each.trouble is not None) for each in found.objects] == [
        ("cut.so", True), ("ign.so", False), ("ser.so", False)
    ]  # fmt: skip
    assert [(gap.path, gap.libraries) for gap in found.unfound] == [(f"{SITE}/a/user.so", ("libcut.so",))]
    assert found.unresolved == ()


def test_symlinks_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / SITE / "a"
    folder.mkdir(parents=True)
    (folder / "libx.so").symlink_to("liby.so")
    (folder / "liby.so").symlink_to("libx.so")

    found = environment(tmp_path, {"a/user.so": ("a", Elf(needs=("libx.so",), rpath="$ORIGIN"))})

    assert [gap.libraries for gap in found.unfound] == [("libx.so",)]


def test_without_compiled_files_nobody_is_asked(tmp_path: Path) -> None:
    assert native.look(tmp_path, {}, {}, {}, [("f", "l.so")]) == Native(asked=(Asked(symbol="f", library="l.so"),))


def test_candidates_are_libraries_and_what_has_no_ending() -> None:
    names = {
        "a/_c.so": True, "a/libx.so.1.2": True, "a/_c.abi3.so": True, "bin/ninja": True, "a/module.py": False,
        "a/libx.solo": False, "a-1.dist-info/RECORD": False, "a/data.so.txt.gz": True,
    }  # fmt: skip
    rows = [FileRow(path=path, size=100, mtime=0, inode=0) for path in names]
    small = FileRow(path="a/tiny.so", size=10, mtime=0, inode=0)
    link = FileRow(path="a/link.so", size=100, mtime=0, inode=0, link="_c.so")

    assert set(compiled.candidates([*rows, small, link])) == {path for path, may in names.items() if may}


CACHE = """\
3 libs found in cache `/etc/ld.so.cache'
\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1
\tlibz.so.1 (libc6) => /lib/i386-linux-gnu/libz.so.1
\tlibm.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/x86_64-linux-gnu/libm.so.6
\tlibarm.so.1 (libc6,AArch64) => /lib/aarch64-linux-gnu/libarm.so.1
Cache generated by: ldconfig (Debian GLIBC 2.36) stable release version 2.36
"""


def test_the_cache_of_the_system_is_read_for_one_architecture() -> None:
    assert host_libraries.parse(CACHE, "x86_64") == {
        "libz.so.1": "/lib/x86_64-linux-gnu/libz.so.1",
        "libm.so.6": "/lib/x86_64-linux-gnu/libm.so.6",
    }
    assert host_libraries.parse(CACHE, "aarch64") == {"libarm.so.1": "/lib/aarch64-linux-gnu/libarm.so.1"}


def test_in_a_conda_environment_the_rpath_of_its_python_leads_to_its_libraries(tmp_path: Path) -> None:
    python = Elf(needs=("libpy.so",), rpath="$ORIGIN/../lib", offers=("PyLong_FromLong",), program=True)
    files = {
        "bin/python3.11": python,
        "lib/libpy.so": Elf(soname="libpy.so", offers=("PyDict_New",)),
        "lib/libown.so.6": Elf(soname="libown.so.6", offers=("own@OWN_1",)),
        f"{SITE}/a/_ext.so": Elf(
            needs=("libown.so.6",), offers=("PyInit__ext",),
            wants=("own@OWN_1@libown.so.6", "PyLong_FromLong", "PyDict_New"),
        ),
        f"{SITE}/a/_by_runpath.so": Elf(needs=("libown.so.6",), runpath="$ORIGIN", offers=("PyInit__by_runpath",)),
    }  # fmt: skip
    for path, file in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(file.bytes())
    (tmp_path / "bin/python").symlink_to("python3.11")
    owners: dict[str, str | None] = dict.fromkeys(files)
    owners |= {f"{SITE}/a/_ext.so": "a", f"{SITE}/a/_by_runpath.so": "a"}

    found = native.look(tmp_path, compiled.read(tmp_path, owners), owners, {"a": Distribution(name="a", version="1")})

    # A RUNPATH of its own puts that of the Python out of force.
    assert [gap.path for gap in found.unfound] == [f"{SITE}/a/_by_runpath.so"]
    assert found.unresolved == ()
