"""A bundle is a tar and a script, is what it says that it is, and leads nowhere else."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.small_bundle import FILES, added, contents, manifest, sha256, with_program, written

from envforge.model.bundle import Needs
from envforge.model.errors import EnvforgeError, UsageError
from envforge.store.bundles import manifest as manifests
from envforge.store.bundles.names import PROFILE, file_name
from envforge.store.bundles.parts import Sink
from envforge.store.bundles.reading import opened
from envforge.store.bundles.start import MANIFEST, PROGRAM
from envforge.store.bundles.workshop import put_in_place, workshop
from envforge.store.bundles.writing import InMemory, write

NAMES = [MANIFEST, *contents()]
SHELLS = [shell for shell in ("dash", "bash", "busybox", "mksh", "ksh") if shutil.which(shell)]


def read(path: Path) -> None:
    with opened(path) as bundle:
        bundle.verify(lambda _: None)


def refusal(path: Path) -> EnvforgeError:
    with pytest.raises(EnvforgeError) as caught:
        read(path)
    return caught.value


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    told: list[int] = []
    with opened(path) as bundle:
        bundle.verify(told.append)
        assert bundle.manifest == manifest(contents())
        assert bundle.lock() == "lock"
        for data in FILES:
            with bundle.files[sha256(data)].open() as file:
                assert (file.read(3), file.read(), file.read()) == (data[:3], data[3:], b"")
                assert file.seek(-len(data), io.SEEK_END) == 0
    assert told[-1] == sum(each.size for each in contents().values())


def test_the_same_contents_are_the_same_bytes_in_one_file_or_several(tmp_path: Path) -> None:
    whole = written(tmp_path / "one").read_bytes()
    assert written(tmp_path / "two").read_bytes() == whole
    folder = tmp_path / "three"
    folder.mkdir()
    held = contents()
    with Sink(folder, 5000) as sink:
        write(sink, manifest(held), list(held.values()), lambda _: None)
    assert b"".join(path.read_bytes() for path in sink.paths) == whole
    assert [path.stat().st_size for path in sink.paths[:-1]] == [5000] * (len(whole) // 5000)
    assert (sink.size, sink.sha256()) == (len(whole), hashlib.sha256(whole).hexdigest())


def test_a_file_that_is_no_longer_what_the_manifest_says_is_not_written(tmp_path: Path) -> None:
    held = contents()
    about = manifest(held)
    held[PROFILE] = InMemory(b"name: dema\n")
    with pytest.raises(EnvforgeError, match=r"profile\.yaml"):
        written(tmp_path, about, held)


@pytest.mark.parametrize("tar", [["tar", "tf"], ["busybox", "tar", "tf"], ["bsdtar", "tf"]], ids=lambda words: words[0])
def test_a_tar_lists_the_files_and_nothing_odd(tmp_path: Path, tar: list[str]) -> None:
    if shutil.which(tar[0]) is None:
        pytest.skip(f"no {tar[0]} here")
    path = written(tmp_path)
    listed = subprocess.run([*tar, path], check=True, capture_output=True, text=True)
    assert (listed.stdout.split(), listed.stderr) == (NAMES, "")


def test_the_tarfile_of_python_lists_and_unpacks_it(tmp_path: Path) -> None:
    with tarfile.open(written(tmp_path)) as archive:
        archive.extractall(tmp_path / "there", filter="data")
        assert archive.getnames() == NAMES
    unpacked = [path for path in (tmp_path / "there").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "there").as_posix() for path in unpacked} == set(NAMES)


# -- the script --------------------------------------------------------------------------------------------------------


def start(shell: str, path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(shutil.which(shell)), *(["sh"] if shell == "busybox" else [])]
    base = f"{Path(str(shutil.which('python3'))).parent}:/usr/bin:/bin"
    fixed = {"PATH": base, "HOME": str(path.parent / "home"), "ENVFORGE_PYTHON": sys.executable}
    (path.parent / "home").mkdir(exist_ok=True)
    return subprocess.run(
        [*command, path.name, *words], cwd=path.parent, env={**fixed, **variables}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_starts_what_is_in_it(tmp_path: Path, shell: str) -> None:
    path = written(tmp_path).rename(tmp_path / "it's a demo.tar")
    done = start(shell, path, "--name", "a b", "$(x)")
    program = next((tmp_path / "home/.local/share/envforge/program").glob("envforge-7.8.9-*"))
    command = str(program / "bin/envforge")
    told = [command, "create", "--bundle", path.name, "--name", "a b", "$(x)"]
    assert (done.returncode, done.stdout) == (0, f"{told}\n"), done.stderr
    assert done.stderr == f"bundle: envforge 7.8.9 lies in {program}\n"
    modes = [path.stat().st_mode & 0o077 for path in (program.parent, program, program.parent.parent)]
    assert (modes[:2], modes[2] != 0) == ([0, 0], True)
    assert (program / "bin/tool").stat().st_mode & 0o777 == 0o755
    again = start(shell, path)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("words", [["--home", "there"], ["--home=there"], []])
def test_the_home_that_is_named_holds_the_program(tmp_path: Path, words: list[str]) -> None:
    done = start("sh", written(tmp_path), *words, **({} if words else {"ENVFORGE_HOME": "there"}))
    assert done.stdout.startswith(f"['{tmp_path}/there/program/envforge-7.8.9-")


def test_what_was_unpacked_by_halves_is_unpacked_anew(tmp_path: Path) -> None:
    path = written(tmp_path)
    start("sh", path, "--home", "there")
    program = next((tmp_path / "there/program").glob("envforge-*"))
    (program / "complete").unlink()
    (program / "bin/envforge").write_text("")
    assert start("sh", path, "--home", "there").stdout.startswith(f"['{program}/bin/envforge'")


def test_an_envforge_of_the_same_version_that_is_installed_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, with_program(manifest(contents()), abi="none-fits"))
    other = tmp_path / "bin/envforge"
    other.parent.mkdir()
    other.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "envforge 7.8.9" || echo "$@"\n')
    other.chmod(0o755)
    done = start("sh", path, "--name", "x", PATH=f"{other.parent}:/usr/bin:/bin")
    assert done.stdout == "create --bundle demo.tar --name x\n"
    other.write_text("#!/bin/sh\necho envforge 7.8.8\n")
    assert start("sh", path, PATH=f"{other.parent}:/usr/bin:/bin").returncode == 1


def test_no_python_that_can_run_it(tmp_path: Path) -> None:
    done = start("sh", written(tmp_path, with_program(manifest(contents()), python="3.99", abi="cpython-399-x")))
    assert done.returncode == 1
    assert "needs a Python 3.99 (cpython-399-x)" in done.stderr
    assert "envforge create --bundle demo.tar" in done.stderr


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Needs(glibc="99.1"), "it needs glibc 99.1 or newer, and this host has "),
        (Needs(architecture="vax"), "it is for vax, and this host is "),
    ],
)
def test_a_host_that_does_not_fit_is_told_so_first(tmp_path: Path, needs: Needs, said: str) -> None:
    held = contents()
    for about in (manifest(held, needs=needs), with_program(manifest(held), needs=needs)):
        done = start("sh", written(tmp_path, about))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"bundle: demo.tar: {said}" in done.stderr
    assert not (tmp_path / "home/.local").exists()


def changed(path: Path, old: bytes, new: bytes) -> Path:
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    return path


def test_nothing_is_started_that_was_changed_or_cut(tmp_path: Path) -> None:
    data = contents()[PROGRAM].data
    for damage in (
        lambda path: changed(path, data, data[:-1] + b"?"),
        lambda path: changed(path, b'"environment": "demo"', b'"environment": "dema"'),
        lambda path: path.write_bytes(path.read_bytes()[: path.read_bytes().index(data) + 9]),
    ):
        path = written(tmp_path)
        damage(path)
        done = start("sh", path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("bundle: demo.tar: "), done.stderr
        assert "Traceback" not in done.stderr


def test_parts_start_by_the_first(tmp_path: Path) -> None:
    path = written(tmp_path)
    data = path.read_bytes()
    size = data.index(contents()[PROGRAM].data) + 9
    for number in range(-(-len(data) // size)):
        (tmp_path / f"demo.tar.{number + 1:03}").write_bytes(data[number * size : (number + 1) * size])
    path.unlink()
    assert start("sh", tmp_path / "demo.tar.001").returncode == 0
    (tmp_path / "demo.tar.002").unlink()
    shutil.rmtree(tmp_path / "home")
    done = start("sh", tmp_path / "demo.tar.001")
    assert (done.returncode, done.stderr.startswith("bundle: demo.tar.001: it is cut short")) == (1, True)


def test_a_script_without_a_file_says_how_it_is_started(tmp_path: Path) -> None:
    with written(tmp_path).open("rb") as file:
        done = subprocess.run(["/bin/sh"], stdin=file, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"run it as sh FILE\n")


# -- what is refused ---------------------------------------------------------------------------------------------------


def kind(of: bytes, name: str = "odd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = of
    info.linkname = "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (tarfile.TarInfo("../x"), "`../x` leads out of it"),
        (tarfile.TarInfo("a/../../x"), "`a/../../x` leads out of it"),
        (tarfile.TarInfo("/x"), "`/x` leads out of it"),
        (tarfile.TarInfo(PROFILE), "`profile.yaml` is in it twice"),
        (tarfile.TarInfo("more"), "`more` is in it, and the manifest does not name it"),
        (kind(tarfile.SYMTYPE), "`odd` in it is a symlink"),
        (kind(tarfile.LNKTYPE), "`odd` in it is a hard link"),
        (kind(tarfile.CHRTYPE), "`odd` in it is a device"),
        (kind(tarfile.BLKTYPE), "`odd` in it is a device"),
        (kind(tarfile.FIFOTYPE), "`odd` in it is a pipe"),
        (kind(tarfile.DIRTYPE), "`odd` in it is a folder"),
        (kind(tarfile.CONTTYPE), "`odd` in it is no plain file"),
    ],
    ids=lambda value: f"{value.name}-{value.type.decode()}" if isinstance(value, tarfile.TarInfo) else None,
)
def test_members_that_no_bundle_has(tmp_path: Path, info: tarfile.TarInfo, said: str) -> None:
    error = refusal(added(written(tmp_path), (info, b"")))
    assert (error.code, error.cause) == ("not-a-bundle", said)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "./a", "", "a//b"])
def test_a_manifest_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    held = contents()
    about = manifest(held)
    odd = replace(about, members=(*about.members, InMemory(b"").member(name)))
    held["x"] = InMemory(b"")
    with pytest.raises(UsageError) as caught:
        manifests.load(manifests.dump(odd), tmp_path)
    assert caught.value.code == "not-a-bundle"


def test_what_is_no_bundle(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    for data in (b"", b"steps: []\n" * 99, bytes(2048)):
        path.write_bytes(data)
        assert refusal(path).code == "not-a-bundle"
    with tarfile.open(path, "w") as archive:
        archive.add(__file__, "x")
    assert refusal(path).code == "not-a-bundle"
    assert refusal(tmp_path / "none").code == "unreadable-file"
    assert refusal(tmp_path).code == "unreadable-file"


def changes(about: dict[str, object], **new: object) -> bytes:
    return json.dumps({**about, **new}).encode()


def test_manifests_of_other_shape(tmp_path: Path) -> None:
    about = {"schema": 1, **json.loads(json.dumps(asdict(manifest(contents()))))}
    assert manifests.load(changes(about), tmp_path) == manifest(contents())
    odds: tuple[dict[str, object], ...] = (
        {"members": {}}, {"members": [{}]}, {"python": 3}, {"python_from": "moon"}, {"program": None},
        {"needs": {"glibc": "2"}}, {"schema": "1"}, {"schema": 0},
        {"members": [{"name": "x", "sha256": "x" * 64, "size": 1}]},
        {"members": [{"name": "x", "sha256": "0" * 64, "size": -1}]},
    )  # fmt: skip
    for odd in odds:
        with pytest.raises(UsageError) as caught:
            manifests.load(changes(about, **odd), tmp_path)
        assert caught.value.code == "not-a-bundle", odd
    for text in (b"", b"[]", b"{", b"[" * 99999):
        with pytest.raises(UsageError) as caught:
            manifests.load(text, tmp_path)
        assert caught.value.code == "not-a-bundle"
    with pytest.raises(UsageError) as caught:
        manifests.load(changes(about, schema=2), tmp_path)
    assert caught.value.code == "newer-record"


WHOLE: dict[str, bytes] = {}


def whole(folder: Path) -> bytes:
    if not WHOLE:
        WHOLE["data"] = written(folder).read_bytes()
    return WHOLE["data"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(cut=st.integers(min_value=0, max_value=1 << 20))
def test_a_bundle_that_was_cut_short(tmp_path: Path, cut: int) -> None:
    data = whole(tmp_path)
    path = tmp_path / "cut.tar"
    path.write_bytes(data[: cut % (len(data) - 1024)])
    error = refusal(path)
    assert error.code in {"bundle-damaged", "not-a-bundle"}
    if error.code == "bundle-damaged":
        assert "cut short" in str(error.cause) or "sha256" in str(error.cause)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(place=st.integers(min_value=0, max_value=1 << 20), bit=st.integers(min_value=0, max_value=7))
def test_a_byte_that_was_changed(tmp_path: Path, place: int, bit: int) -> None:
    data = bytearray(whole(tmp_path))
    start = data.index(b'{\n "schema"')
    # Behind the files there is but padding.
    place = start + place % (len(data) - 2048 - start)
    inside = data[place] != 0
    data[place] ^= 1 << bit
    path = tmp_path / "changed.tar"
    path.write_bytes(data)
    if inside:
        assert refusal(path).code in {"bundle-damaged", "not-a-bundle"}


# -- parts -------------------------------------------------------------------------------------------------------------


def split(path: Path, size: int) -> list[Path]:
    data = path.read_bytes()
    path.unlink()
    found = []
    for number in range(-(-len(data) // size)):
        found.append(path.with_name(f"{path.name}.{number + 1:03}"))
        found[-1].write_bytes(data[number * size : (number + 1) * size])
    return found


def test_parts_are_read_as_one_and_a_missing_one_is_named(tmp_path: Path) -> None:
    first, second, *others = split(written(tmp_path), 12000)
    read(first)
    error = refusal(second)
    assert (error.code, error.hint) == ("unreadable-file", f"name `{first}`")
    error = refusal(tmp_path / "demo.tar")
    assert error.hint == f"its first part is there: name `{first}`"
    assert others
    second.rename(tmp_path / "aside")
    error = refusal(first)
    assert error.code == "bundle-part-missing"
    assert f"`{second}` is missing" in error.message
    (tmp_path / "aside").rename(second)
    others[-1].unlink()
    error = refusal(first)
    assert error.code == "bundle-part-missing"
    assert str(others[-1]) in error.message


def test_a_part_that_was_cut_short_is_named(tmp_path: Path) -> None:
    first, second, *_ = split(written(tmp_path), 12000)
    second.write_bytes(second.read_bytes()[:-1])
    error = refusal(first)
    assert (error.code, error.cause) == ("bundle-damaged", f"`{second}` is not as long as `{first}`")


# -- where it is made --------------------------------------------------------------------------------------------------


def test_what_was_fetched_waits_and_goes_once_all_is_done(tmp_path: Path) -> None:
    file = tmp_path / "demo.tar"
    digest = "0" * 64

    def fail() -> None:
        with workshop(file) as folder:
            for name in (digest, f"{digest}.{'1' * 32}.part", "1"):
                (folder / name).touch()
            raise EnvforgeError("some-code", "failed")

    with pytest.raises(EnvforgeError, match="failed"):
        fail()
    (tmp_path / "demo.tar.part/of-the-user").touch()
    with workshop(file) as folder:
        assert {path.name for path in folder.iterdir()} == {digest, "of-the-user"}
    assert [path.name for path in (tmp_path / "demo.tar.part").iterdir()] == ["of-the-user"]


def test_two_do_not_write_one_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "demo.tar.part"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(EnvforgeError) as caught, workshop(tmp_path / "demo.tar"):
        pass
    os.close(descriptor)
    assert caught.value.code == "locked"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "none/demo.tar", tmp_path / "file/demo.tar"):
        with pytest.raises(EnvforgeError) as caught, workshop(place):
            pass
        assert caught.value.code == "not-writable"


def test_older_parts_go(tmp_path: Path) -> None:
    file = tmp_path / "demo.tar"
    for number in (1, 2, 3, 4, 6):
        (tmp_path / f"demo.tar.{number:03}").write_text("old")
    made = [tmp_path / "1", tmp_path / "2"]
    for path in made:
        path.write_text("new")
    assert put_in_place(made, file, split=True) == (tmp_path / "demo.tar.001", tmp_path / "demo.tar.002")
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == {"demo.tar.001": "new", "demo.tar.002": "new", "demo.tar.006": "old"}


def test_a_version_that_cannot_stand_in_a_script(tmp_path: Path) -> None:
    with pytest.raises(EnvforgeError) as caught:
        written(tmp_path, with_program(manifest(contents()), version="1'; rm x; '"))
    assert caught.value.code == "bad-program"


def test_several_threads_read_one_bundle(tmp_path: Path) -> None:
    wrong: list[bytes] = []
    with opened(written(tmp_path)) as bundle:
        piece = bundle.pieces[file_name(sha256(FILES[0]), "file-0.whl")]

        def look() -> None:
            for _ in range(200):
                with piece.open() as file:
                    if file.read() != FILES[0]:
                        wrong.append(FILES[0])

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_the_text_of_the_start_can_stand_in_apostrophes() -> None:
    folder = Path(manifests.__file__).parent
    assert "'" not in (folder / "start.py").read_text(encoding="utf-8")
