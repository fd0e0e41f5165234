"""The router between real uv and real indexes."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from engines.rig import indexes, rig, site
from kit.index import Fault, Index, serve
from kit.wheels import Sdist, Wheel

from envforge.engines.artefacts import Artefact
from envforge.engines.replies import HOST
from envforge.engines.uv import Ask, Move
from envforge.model.errors import EnvforgeError
from envforge.model.profile import Index as Listed
from envforge.model.settings import Settings
from envforge.system import http
from envforge.system.http import LoopbackServer, Request, Response

ONE = Wheel(name="six", version="1.0.0")
TWO = Wheel(name="six", version="2.0.0")
APP = Wheel(name="app", version="1.0.0", requires=("six",))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.setattr("envforge.system.http.time.sleep", lambda _: None)
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def moved(moves: tuple[Move, ...]) -> dict[str, str]:
    return {move.name: move.version for move in moves}


def test_a_list_of_packages_holds_for_what_is_required_too(tmp_path: Path) -> None:
    with serve({"own": Index(artefacts=[ONE, APP]), "pypi": Index(artefacts=[TWO, APP])}) as server:
        own, pypi = indexes(server)
        given = (Listed(name="own", url=own.url, packages=("six",)), pypi)
        with rig(tmp_path, given) as made:
            moves = made.resolve("app")
            assert moved(moves) == {"app": "1.0.0", "six": "1.0.0"}
            assert {each.name: each.index for each in made.found(moves)} == {"app": "pypi", "six": "own"}
            prefix = made.venv()
            made.install(prefix, made.found(moves))
        assert (site(prefix) / "six-1.0.0.dist-info").is_dir()
        assert not server.requests("page", "six", "pypi")
        assert not server.requests("page", "app", "own")


def test_a_name_whose_own_index_lacks_it_is_nowhere(tmp_path: Path) -> None:
    with serve({"own": Index(), "pypi": Index(artefacts=[ONE])}) as server:
        own, pypi = indexes(server)
        given = (Listed(name="own", url=own.url, packages=("six",)), pypi)
        with rig(tmp_path, given) as made, pytest.raises(EnvforgeError, match="not at `own`") as caught:
            made.resolve("six")
    assert caught.value.code == "package-not-found"


@pytest.mark.parametrize("page", ["html", "json"])
def test_what_an_index_omits_is_added(tmp_path: Path, page: str) -> None:
    bare = Index(artefacts=[APP, ONE], page=page, metadata=False, hashes=False, sizes=False)  # type: ignore[arg-type]
    with serve({"pypi": bare}) as server, rig(tmp_path, indexes(server)) as made:
        moves = made.resolve("app")
        entry = made.page("six").json()["files"][0]
        path = entry["url"].removeprefix(f"http://{HOST}")
        assert entry["core-metadata"] is True
        assert made.get(f"{path}.metadata").text == ONE.metadata()
        found = made.found(moves)
        assert [each.sha256 for each in found] == [None, None]
        hashed = [made.router.hashed(each) for each in found]
        assert all(re.fullmatch("[0-9a-f]{64}", each.sha256 or "") for each in hashed)
        made.install(made.venv(), found)
        whole = [request.name for request in server.requests("file") if "Range" not in request.headers]
        assert sorted(whole) == [APP.filename, ONE.filename], "fetched for the hash, and not again"


def test_a_password_stays_between_the_router_and_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_PYPI_USERNAME", "me")
    monkeypatch.setenv("ENVFORGE_INDEX_PYPI_PASSWORD", "pa55word")
    index = Index(artefacts=[APP, ONE], auth="me:pa55word", urls="elsewhere")
    with serve({"pypi": index}) as server, rig(tmp_path, indexes(server)) as made:
        moves = made.resolve("app")
        said = made.install(made.venv(), made.found(moves))
        assert "pa55word" not in said + made.page("six").text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"pa55word" in path.read_bytes()]


def test_a_redirect_to_another_host_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVFORGE_INDEX_PYPI_PASSWORD", "pa55word")
    seen: list[Request] = []

    def other(request: Request) -> Response:
        seen.append(request)
        kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
        return Response(body=b'{"meta": {"api-version": "1.0"}, "name": "six", "files": []}', headers=kind)

    there = LoopbackServer(other)
    there.start()
    away = there.url.replace("127.0.0.1", "localhost")
    here = LoopbackServer(lambda request: Response(status=302, headers={"Location": away + request.path}))
    here.start()
    with rig(tmp_path, [Listed(name="pypi", url=f"{here.url}/simple/")]) as made:
        assert made.page("six").status_code == 200
    here.stop()
    there.stop()
    assert [request.path for request in seen] == ["/simple/six/"]
    assert "authorization" not in seen[0].headers


# -- mirrors -------------------------------------------------------------------------------------------------------


def mirrored(tmp_path: Path, *urls: str) -> Settings:
    return Settings(home=tmp_path, cache=tmp_path / "cache", mirrors={"pypi": urls})


def test_a_mirror_answers_first_and_the_next_has_what_it_lacks(tmp_path: Path) -> None:
    shelves = {"pypi": Index(artefacts=[ONE, TWO]), "near": Index(artefacts=[ONE, TWO], hidden=["six-2*"])}
    with serve(shelves) as server:
        pypi, near = indexes(server)
        with rig(tmp_path, [pypi], settings=mirrored(tmp_path, near.url or "", "origin")) as made:
            moves = made.resolve("six")
            assert moved(moves) == {"six": "2.0.0"}
            (found,) = made.found(moves)
            (lag,) = made.router.lags(found)
            assert ("/near/" in lag.mirror, "/pypi/" in (lag.served_by or "")) == (True, True)
            made.install(made.venv(), [found])
            assert [request.status for request in server.requests("file", "six-2*", "near")][-1] == 404
            assert server.requests("file", "six-2*", "pypi")
            assert found.url is not None
            assert "/pypi/" in found.url


def test_other_bytes_on_a_mirror_are_refused(tmp_path: Path) -> None:
    bad = Index(artefacts=[ONE], faults=[Fault(file="*.whl", other=True)])
    with serve({"pypi": Index(artefacts=[ONE]), "near": bad}) as server:
        pypi, near = indexes(server)
        with rig(tmp_path, [pypi], settings=mirrored(tmp_path, near.url or "")) as made:
            found = made.found(made.resolve("six"))
            prefix = made.venv()
            completed = made.uv.install(prefix, found, made.scratch(), tmp_path / "log")
            assert made.uv.failure(completed, "step").code == "hash-mismatch"
            assert not list(site(prefix).glob("six*"))
            with pytest.raises(EnvforgeError, match="sha256") as caught:
                made.router.fetch(found[0])
            assert caught.value.code == "hash-mismatch"
    assert not list((tmp_path / "cache/index/files").iterdir()), "nothing half is left"


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    short = Index(artefacts=[ONE], hashes=False, faults=[Fault(file="*.whl", truncate=True)])
    with serve({"pypi": short}) as server, rig(tmp_path, indexes(server)) as made:
        (found,) = made.found((Move(name="six", version="1.0.0", action="installed"),))
        with pytest.raises(EnvforgeError):
            made.router.hashed(found)
    assert not list((tmp_path / "cache/index/files").iterdir())


# -- without network -----------------------------------------------------------------------------------------------


def test_offline_from_the_cache(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[APP, ONE])}) as server:
        given = indexes(server)
        with rig(tmp_path, given) as made:
            found = made.found(made.resolve("app"))
            made.install(made.venv(), found)
    with rig(tmp_path, given, offline=True) as made:
        again = made.found(made.resolve("app"))
        assert [each.sha256 for each in again] == [each.sha256 for each in found]
        made.install(made.venv(), again)
        with pytest.raises(EnvforgeError, match="offline") as caught:
            made.resolve("never-asked")
    assert caught.value.code == "not-cached"


def test_offline_with_an_index_that_lacks_the_name(tmp_path: Path) -> None:
    with serve({"first": Index(), "pypi": Index(artefacts=[ONE])}) as server:
        given = indexes(server)
        with rig(tmp_path, given) as made:
            made.resolve("six")
    with rig(tmp_path, given, offline=True) as made:
        assert moved(made.resolve("six")) == {"six": "1.0.0"}


# -- pages that mean ill -------------------------------------------------------------------------------------------

JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}


def files(*rows: Mapping[str, object]) -> bytes:
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "six", "files": rows}).encode()


EVIL = [
    "six-1.0-py3-none-any./../../../../evil.whl", "../six-1.0.tar.gz", "/six-1.0.tar.gz", "six-1.0/../x.tar.gz",
    "six-..tar.gz", "six-1.0%2f..%2fx.tar.gz", "six-1.0.tar.gz\0", "six-1.0\n.tar.gz", "", ".", "..",
    "six-1.0-py3-none-any.whl\r\nX: y",
]  # fmt: skip


@pytest.mark.parametrize("file", EVIL)
def test_an_evil_file_name_neither_escapes_nor_stops_the_rest(tmp_path: Path, file: str) -> None:
    good = ONE.bytes()

    def answer(request: Request) -> Response:
        if not request.path.startswith("/simple/"):
            return Response(body=good)
        rows = [{"filename": file, "url": f"/evil/{index}", "hashes": {}} for index in range(2)]
        rows.append({"filename": TWO.filename, "url": f"/good/{TWO.filename}", "hashes": {}})
        return Response(body=files(*rows), headers=JSON)

    server = LoopbackServer(answer)
    server.start()
    root = tmp_path / "a/b/c/d"
    with rig(root, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
        page = made.page("six")
        assert page.status_code == 200
        for entry in page.json()["files"]:
            made.get(entry["url"].removeprefix(f"http://{HOST}"))
            made.get(entry["url"].removeprefix(f"http://{HOST}") + ".metadata")
        found = made.router.find("six", "2.0.0")
        assert found.file == TWO.filename
        made.router.fetch(found)
    server.stop()
    outside = {path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(root)}
    assert not outside
    kept = [path for path in (root / "cache").rglob("*") if path.is_file()]
    assert all(re.search(r"/index/(pages/[0-9a-f]{16}|files|metadata)/[^/]+$", str(path)) for path in kept)


@pytest.mark.parametrize(
    "path",
    [
        "/KEY/simple/../", "/KEY/simple/%2e%2e/", "/KEY/simple/..%2f..%2fx/", "/KEY/simple/%2fetc%2fpasswd/",
        "/KEY/simple/a%00b/",
        "/KEY/simple//", "/KEY/simple/", "/KEY/", "/", "/KEY/files/../x", "/KEY/files/%2e%2e/x.whl",
        "/KEY/files/a/%2e%2e%2fx.whl",
        "/built/files/%2e%2e/x.whl", f"/built/files/{'a' * 64}/x.whl", "/built/simple/six/", "/nokey/simple/six/",
        "/nokey/files/x/y.whl", "/KEY/simple/" + "n" * 5000 + "/", "/KEY/simple/%ff%fe/",
        "/KEY/files/x/six-1.0.whl.metadata",
    ],
)  # fmt: skip
def test_an_evil_path_finds_nothing(tmp_path: Path, path: str) -> None:
    with serve({"pypi": Index(artefacts=[ONE])}) as server, rig(tmp_path, indexes(server)) as made:
        key = next(iter(made.router.routes.origins))
        assert made.get(path.replace("KEY", key)).status_code in {404, 424}
        assert made.page("six").status_code == 200


def test_plain_http_reaches_no_other_host(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[ONE])}) as server, rig(tmp_path, indexes(server)) as made:
        import httpx

        with httpx.Client(proxy=made.router.proxy, trust_env=False) as one:
            assert one.get(f"{server.base}/pypi/simple/six/").status_code == 403
        assert not server.requests()


BROKEN = {
    "address": (b'<a href="http://[x/six-1.0.zip">x</a>', "text/html"),
    "name": (files({"filename": None, "url": "x"}), JSON["Content-Type"]),
    "deep": (b'{"files":' + b"[" * 200_000, JSON["Content-Type"]),
}


@pytest.mark.parametrize("kind", ["address", "name", "deep"])
def test_a_broken_page_is_the_index_s_fault(tmp_path: Path, kind: str) -> None:
    body, content = BROKEN[kind]
    server = LoopbackServer(lambda _: Response(body=body, headers={"Content-Type": content}))
    server.start()
    import httpx

    try:
        with rig(tmp_path, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
            answer = made.page("six")
            assert answer.status_code in {200, 404, 424}
    except httpx.TransportError as error:
        pytest.fail(str(error))
    finally:
        server.stop()


@pytest.mark.parametrize(
    "address", ["https://x.invalid/a\r\nX-Evil: 1", "https://x.invalid/\u6f22"], ids=["break", "sign"]
)
def test_an_address_is_no_header(tmp_path: Path, address: str) -> None:
    row = {"filename": ONE.filename, "url": address, "hashes": {}}
    server = LoopbackServer(lambda _: Response(body=files(row), headers=JSON))
    server.start()
    with rig(tmp_path, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
        entry = made.page("six").json()["files"]
        server.stop()
        if not entry:
            return  # not believed at all
        try:
            answer = made.get(entry[0]["url"].removeprefix(f"http://{HOST}"))
        except OSError as error:
            pytest.fail(str(error))
        assert "x-evil" not in answer.headers
        assert answer.status_code in {302, 404, 424}


def test_a_file_without_a_host_is_an_error_of_its_index(tmp_path: Path) -> None:
    row = {"filename": ONE.filename, "url": "data:x", "hashes": {}}
    server = LoopbackServer(lambda _: Response(body=files(row), headers=JSON))
    server.start()
    with rig(tmp_path, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
        found = made.router.find("six", "1.0.0")
        try:
            with pytest.raises(EnvforgeError):
                made.router.metadata(found)
        finally:
            server.stop()


# -- pages that are large, or asked again --------------------------------------------------------------------------


def test_a_large_page_is_asked_once_however_many_want_it(tmp_path: Path) -> None:
    asked: list[str] = []
    rows = [
        {"filename": f"six-{n}.0-py3-none-any.whl", "url": f"/f/{n}.whl", "hashes": {"sha256": f"{n:064x}"}}
        for n in range(5_000)
    ]

    def answer(request: Request) -> Response:
        asked.append(request.path)
        return Response(body=files(*rows), headers=JSON)

    server = LoopbackServer(answer)
    server.start()
    with rig(tmp_path, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
        bodies: list[int] = []
        threads = [
            threading.Thread(target=lambda: bodies.append(len(made.page("six").json()["files"]))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bodies == [5_000] * 4
        assert made.router.find("six", "4999.0").file == "six-4999.0-py3-none-any.whl"
    server.stop()
    assert asked == ["/simple/six/"]


def test_a_page_that_did_not_change_is_not_sent_again(tmp_path: Path) -> None:
    statuses: list[int] = []

    def answer(request: Request) -> Response:
        same = request.headers.get("if-none-match") == '"1"' and "if-modified-since" in request.headers
        statuses.append(304 if same else 200)
        headers = {**JSON, "ETag": '"1"', "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}
        row = {"filename": ONE.filename, "url": "/x.whl", "hashes": {}}
        return Response(status=304, headers=headers) if same else Response(body=files(row), headers=headers)

    server = LoopbackServer(answer)
    server.start()
    for _ in range(3):
        with rig(tmp_path, [Listed(name="pypi", url=f"{server.url}/simple/")]) as made:
            page = made.page("six")
            assert len(page.json()["files"]) == 1
            key = next(iter(made.router.routes.origins))
            again = made.get(f"/{key}/simple/six/", **{"If-None-Match": page.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
    server.stop()
    assert statuses == [200, 304, 304]


@pytest.mark.parametrize("part", [0, 0.1, 0.9])
def test_a_damaged_cache_is_fetched_anew(tmp_path: Path, part: float) -> None:
    with serve({"pypi": Index(artefacts=[ONE])}) as server:
        given = indexes(server)
        with rig(tmp_path, given) as made:
            made.page("six")
        (kept,) = (tmp_path / "cache/index/pages").glob("*/six.json")
        kept.write_bytes(kept.read_bytes()[: int(part * kept.stat().st_size)])
        with rig(tmp_path, given) as made:
            assert made.page("six").json()["files"]


# -- sdists that wait for the environment --------------------------------------------------------------------------


def listed(text: dict[str, object]) -> list[str]:
    return [str(row["filename"]) for row in text["files"]]  # type: ignore[attr-defined]


def test_an_sdist_that_cannot_be_built_yet_looks_like_a_wheel(tmp_path: Path) -> None:
    sdist = Sdist(wheel=Wheel(name="ext", version="1.0", requires=("six",)))
    with serve({"pypi": Index(artefacts=[sdist, ONE])}) as server, rig(tmp_path, indexes(server)) as made:
        moves = made.resolve("ext", ask=Ask(requirements=(), no_build_isolation=("ext",)))
        assert moved(moves) == {"ext": "1.0", "six": "1.0.0"}
        found: Artefact = next(each for each in made.found(moves) if each.name == "ext")
        assert (found.wheel, found.sdist and found.sdist.file) == (True, "ext-1.0.tar.gz")


def test_a_disguise_ends_with_its_run(tmp_path: Path) -> None:
    sdist = Sdist(wheel=Wheel(name="ext", version="1.0"))
    with serve({"pypi": Index(artefacts=[sdist])}) as server, rig(tmp_path, indexes(server)) as made:
        made.router.begin(unbuilt=("ext",))
        assert listed(made.page("ext").json()) == ["ext-1.0-py3-none-any.whl"]
        made.router.begin()
        assert listed(made.page("ext").json()) == ["ext-1.0.tar.gz"]
