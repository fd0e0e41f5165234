"""METADATA out of wheels that lie elsewhere, whole or broken."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.index import Fault, Index, Server, serve
from kit.wheels import Sdist, Wheel

from envforge.engines import remote
from envforge.engines.remote import NoMetadataError
from envforge.model.errors import EnvforgeError
from envforge.system.http import Client, LoopbackServer, Proxies, Request, Response

SMALL = Wheel(name="six", version="1.0", files={"six/a.txt": "a"})
LARGE = Wheel(name="big", version="1.0", files={f"big/{'n' * 80}{number}.txt": "" for number in range(1500)})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr("envforge.system.http.time.sleep", lambda _: None)
    one = Client(Proxies())
    yield one
    one.close()


def at(server: Server, file: str) -> str:
    return f"{server.base}/a/files/{file}"


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("wheel", [SMALL, LARGE], ids=["small", "large"])
def test_metadata_of_a_wheel(client: Client, wheel: Wheel, ranges: bool) -> None:
    with serve({"a": Index(artefacts=[wheel], ranges=ranges)}) as server:
        assert remote.from_wheel(client, at(server, wheel.filename), None) == wheel.metadata().encode()
        assert len(server.requests("file")) <= 3
        assert all("Range" in request.headers for request in server.requests("file"))


def test_the_sidecar(client: Client) -> None:
    with serve({"a": Index(artefacts=[SMALL]), "b": Index(artefacts=[SMALL], metadata=False)}) as server:
        assert remote.sidecar(client, at(server, SMALL.filename), None) == SMALL.metadata().encode()
        assert remote.sidecar(client, at(server, SMALL.filename).replace("/a/", "/b/"), None) is None
    assert remote.sidecar(client, "http://127.0.0.1:1/x.whl", None) is None


def test_a_sidecar_that_is_a_web_page_is_none(client: Client) -> None:
    server = LoopbackServer(lambda _: Response(body=b"<html>please log in</html>"))
    server.start()
    assert remote.sidecar(client, f"{server.url}/x.whl", None) is None
    server.stop()


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_status_is_told(client: Client, status: int) -> None:
    faults = [Fault(file="*", status=status)]
    with serve({"a": Index(artefacts=[SMALL], faults=faults)}) as server, pytest.raises(NoMetadataError) as caught:
        remote.from_wheel(client, at(server, SMALL.filename), None)
    assert caught.value.status == status
    with pytest.raises(NoMetadataError, match=r".+"):
        remote.from_wheel(client, "http://127.0.0.1:1/x.whl", None)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_body_that_ends_early(client: Client, ranges: bool) -> None:
    faults = [Fault(file="*", truncate=True)]
    with serve({"a": Index(artefacts=[SMALL], ranges=ranges, faults=faults)}) as server, pytest.raises(NoMetadataError):
        remote.from_wheel(client, at(server, SMALL.filename), None)


def answering(data: bytes, request: Request, *, ranges: bool = True) -> Response:
    """A host that knows ranges (or not), for bytes that the kit would never make."""
    asked = request.headers.get("range", "").removeprefix("bytes=")
    if not ranges or not asked:
        return Response(body=data)
    first, last = asked.split("-")
    start, end = (max(0, len(data) - int(last)), len(data)) if not first else (int(first), int(last) + 1)
    if start >= len(data):
        return Response(status=416)
    window = data[start:end]
    content = f"bytes {start}-{start + len(window) - 1}/{len(data)}"
    return Response(status=206, body=window, headers={"Content-Range": content})


def outcome(client: Client, data: bytes, *, ranges: bool = True) -> bytes | str:
    server = LoopbackServer(lambda request: answering(data, request, ranges=ranges))
    server.start()
    try:
        return remote.from_wheel(client, f"{server.url}/x.whl", None)
    except NoMetadataError as error:
        return str(error)
    finally:
        server.stop()


def test_a_wheel_with_a_comment(client: Client) -> None:
    data = io.BytesIO(LARGE.bytes())
    with zipfile.ZipFile(data, "a") as archive:
        archive.comment = b"c" * 65_000
    assert outcome(client, data.getvalue()) == LARGE.metadata().encode()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("data", [b"", b"x", b"x" * 200_000, SMALL.bytes()[:-30], b"PK\5\6" + b"\0" * 18])
def test_what_is_no_wheel(client: Client, data: bytes, ranges: bool) -> None:
    said = outcome(client, data, ranges=ranges)
    assert isinstance(said, str)
    assert said


def test_a_range_without_its_place_is_refused(client: Client) -> None:
    server = LoopbackServer(lambda _: Response(status=206, body=b"x"))
    server.start()
    with pytest.raises(NoMetadataError, match="not a readable wheel"):
        remote.from_wheel(client, server.url, None)
    server.stop()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_are_no_crash(data: st.DataObject) -> None:
    """Whatever one byte of a wheel becomes, the only errors are those that `from_wheel` turns into its own."""
    whole = bytearray(SMALL.bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        remote.metadata_in(io.BytesIO(bytes(whole)))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, zlib.error, NotImplementedError, RuntimeError):
        return  # zlib.error and RuntimeError are the business of the next test


@pytest.mark.parametrize("method", [9, 12, 99])
def test_a_wheel_that_cannot_be_unpacked(client: Client, method: int) -> None:
    data = bytearray(SMALL.bytes())
    name = b"six-1.0.dist-info/METADATA"
    local, central = data.index(name), data.rindex(name)
    if method == 12:
        data[local + len(name)] = 0xFF  # no deflate stream begins like this
    else:
        data[local - 22] = data[central - 36] = method
    assert isinstance(outcome(client, bytes(data)), str)


def test_two_dist_infos_of_which_one_is_vendored(client: Client) -> None:
    inner = {"six/_vendor/other-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: other\nVersion: 2.0\n"}
    wheel = Wheel(name="six", version="1.0", files=inner)
    assert outcome(client, wheel.bytes()) == wheel.metadata().encode()


# -- sdists --------------------------------------------------------------------------------------------------------


def info(text: str, path: Path, name: str = "six-1.0/PKG-INFO") -> Path:
    file = path / "six-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text.encode())
        archive.addfile(entry, io.BytesIO(text.encode()))
    return file


HEAD = "Name: six\nVersion: 1.0\n"


@pytest.mark.parametrize(
    ("text", "static"),
    [
        (f"Metadata-Version: 2.2\n{HEAD}", True),
        (f"Metadata-Version: 2.4\n{HEAD}Dynamic: License-File\n", True),
        (f"Metadata-Version: 2.10\n{HEAD}", True),
        (f"Metadata-Version: 3.0\n{HEAD}", True),
        (f"Metadata-Version: 2.1\n{HEAD}", False),
        (f"Metadata-Version: 1.0\n{HEAD}", False),
        (f"Metadata-Version: 2.2\n{HEAD}Dynamic: Requires-Dist\n", False),
        (f"Metadata-Version: 2.2\n{HEAD}dynamic: requires-dist\n", False),
        (f"Metadata-Version: 2.2\n{HEAD}Dynamic:  Version \n", False),
        (f"Metadata-Version: 2.2\n{HEAD}Dynamic: Requires-Python\nDynamic: Summary\n", False),
        (f"Metadata-Version: 2.2\n{HEAD}\nDynamic: Requires-Dist\n", True),
        (f"Metadata-Version: 2.2\n{HEAD}Dynamic: Requires-Dist\n".replace("\n", "\r\n"), False),
        (f"Metadata-Version: soon\n{HEAD}", False),
        (HEAD, False),
        ("", False),
    ],
)
def test_whether_metadata_is_static(tmp_path: Path, text: str, static: bool) -> None:
    assert remote.is_static(info(text, tmp_path)) is static


def test_the_metadata_of_an_sdist(tmp_path: Path) -> None:
    for sdist in (Sdist(wheel=SMALL), Sdist(wheel=SMALL, metadata="dynamic")):
        file = tmp_path / sdist.filename
        file.write_bytes(sdist.bytes())
        assert b"Name: six" in remote.pkg_info(file)
        assert remote.is_static(file) is (sdist.metadata == "static")
    archive = tmp_path / "six-1.0.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("six-1.0/src/six.egg-info/PKG-INFO", "wrong")
        opened.writestr("six-1.0/PKG-INFO", "right")
    assert remote.pkg_info(archive) == b"right"


def test_what_is_no_sdist(tmp_path: Path) -> None:
    whole = Sdist(wheel=SMALL).bytes()
    for data in (b"", b"nothing", whole[:40], whole[: len(whole) // 2], b"\x1f\x8b" + b"x" * 50):
        file = tmp_path / "six-1.0.tar.gz"
        file.write_bytes(data)
        try:
            remote.pkg_info(file)
        except EnvforgeError as error:
            assert error.code == "bad-sdist"  # noqa: PT017 - half an sdist may hold all that is asked
        remote.is_static(file)
    with pytest.raises(EnvforgeError, match="no sdist"):
        remote.pkg_info(info("x", tmp_path, "six-1.0/src/PKG-INFO"))


def test_a_damaged_sdist(tmp_path: Path) -> None:
    file = tmp_path / "six-1.0.tar.gz"
    for position in range(10, 40):
        data = bytearray(Sdist(wheel=SMALL).bytes())
        data[position : position + 4] = b"\xff\xff\xff\xff"
        file.write_bytes(bytes(data))
        remote.is_static(file)
