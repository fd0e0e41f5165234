"""Proxies as they are written in the wild, a client that is patient but not for ever, and a server on loopback."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from envforge.system import http as net
from envforge.system.http import Client, LoopbackServer, Proxies, Request, Response, Unreachable

ROUTER = "index.envforge.invalid"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@contextmanager
def served(answer: Callable[[Request], Response]) -> Iterator[LoopbackServer]:
    server = LoopbackServer(answer)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def client(proxies: Proxies | None = None) -> Iterator[Client]:
    one = Client(proxies or Proxies())
    try:
        yield one
    finally:
        one.close()


# -- proxies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Proxies()),
        ({"http_proxy": "http://a:1"}, Proxies(http="http://a:1")),
        ({"HTTPS_PROXY": "http://a:1"}, Proxies(https="http://a:1")),
        ({"http_proxy": "http://low:1", "HTTP_PROXY": "http://up:1"}, Proxies(http="http://low:1")),
        ({"http_proxy": " ", "HTTP_PROXY": "http://up:1"}, Proxies(http="http://up:1")),
        ({"all_proxy": "http://a:1"}, Proxies(http="http://a:1", https="http://a:1")),
        ({"ALL_PROXY": "http://a:1", "https_proxy": "http://b:2"}, Proxies(http="http://a:1", https="http://b:2")),
        ({"https_proxy": "a:1"}, Proxies(https="http://a:1")),
        ({"no_proxy": " a , .b.c,, "}, Proxies(exempt=("a", ".b.c"))),
        (
            {"ALL_PROXY": "socks://a:1"},
            Proxies(http="socks5://a:1", https="socks5://a:1", rewritten=("ALL_PROXY",)),
        ),
        ({"https_proxy": "socks5h://a:1"}, Proxies(https="socks5h://a:1")),
    ],
)
def test_proxies_of_the_host(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: Proxies) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert net.proxies() == expected


def test_the_configuration_wins_over_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://a:1")
    monkeypatch.setenv("no_proxy", "b")
    assert net.proxies("socks://c:2") == Proxies(http="socks5://c:2", https="socks5://c:2", exempt=("b",))


@pytest.mark.parametrize(
    "exempt",
    [(), ("*",), (ROUTER,), (".envforge.invalid",), ("*.invalid", "a"), ("invalid",), (".invalid", "a", ".b")],
)
@pytest.mark.parametrize("https", [None, "http://a:1"])
def test_the_router_is_always_asked_through_its_own_proxy(exempt: tuple[str, ...], https: str | None) -> None:
    given = Proxies(https=https, exempt=exempt).for_engine("http://127.0.0.1:9", ROUTER, Path("/roots.pem"))
    assert given["http_proxy"] == given["HTTP_PROXY"] == "http://127.0.0.1:9"
    for entry in given.get("no_proxy", "").split(","):
        assert entry != "*"
        assert not entry or not ROUTER.endswith(entry.lstrip("*."))
    assert given.get("NO_PROXY") == given.get("no_proxy")
    assert ("https_proxy" in given) == (https is not None and "*" not in exempt)


def test_what_the_host_exempts_stays_exempt_for_an_engine() -> None:
    given = Proxies(https="http://a:1", exempt=("corp.example", ".invalid")).for_engine(
        "http://r", ROUTER, Path("/roots.pem")
    )
    assert given["no_proxy"] == "corp.example"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a/b", "https://a/b"),
        ("https://u:p@a:1/b?c=d#e", "https://a:1/b"),
        ("https://u:p%40@a/b", "https://a/b"),
        ("https://u:p@x@a/b", "https://a/b"),
        ("git+ssh://git@a/b", "git+ssh://a/b"),
        ("file:///a/b", "file:///a/b"),
    ],
)
def test_a_url_without_credentials(url: str, shown: str) -> None:
    assert net.without_credentials(url) == shown


@pytest.mark.parametrize("entry", ["localhost", "127.0.0.1", ".a.b", "*.a.b", "10.0.0.0/8", "a:80", "192.168."])
def test_entries_of_no_proxy(entry: str) -> None:
    with (
        served(lambda _: Response(body=b"here")) as server,
        client(Proxies(http="http://127.0.0.1:1", exempt=(entry,))) as one,
    ):
        assert one.get(server.url).content == b"here"


@pytest.mark.parametrize("entry", ["::1", "[::1]", "fe80::/10"])
def test_an_ipv6_address_in_no_proxy(entry: str) -> None:
    test_entries_of_no_proxy(entry)


def test_a_proxy_is_asked_for_what_is_not_exempt() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Response:
        asked.append(request)
        return Response(body=b"proxied")

    with served(answer) as server, client(Proxies(http=server.url, exempt=("other.invalid",))) as one:
        assert one.get("http://some.invalid/x?y=z").content == b"proxied"
        assert (asked[0].host, asked[0].path) == ("some.invalid", "/x")
        assert one.get(f"{server.url}/direct").content == b"proxied"
        assert asked[1].host is None


@pytest.mark.parametrize("proxy", ["socks4://127.0.0.1:1", "ftp://127.0.0.1:1", "http://127.0.0.1:port"])
def test_a_proxy_that_cannot_be_used(proxy: str) -> None:
    with client(Proxies(http=proxy)) as one, pytest.raises(Unreachable):
        one.get("http://some.invalid/")


# -- the client ----------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting between tries takes no time; how long it would have been."""
    waits: list[float] = []
    monkeypatch.setattr("envforge.system.http.time.sleep", waits.append)
    return waits


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_passes_is_asked_again(quick: list[float], status: int, method: str) -> None:
    left = [status, status]
    with served(lambda _: Response(status=left.pop() if left else 200, body=b"fine")) as server, client() as one:
        assert one.get(server.url, method=method).status_code == 200
    assert quick == sorted(quick)
    assert len(quick) == 2


def test_what_does_not_pass_is_handed_on_as_it_is(quick: list[float]) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        seen.append(request)
        return Response(status=503, body=b"busy")

    with served(answer) as server, client() as one:
        assert one.get(server.url).status_code == 503
        response = one.stream(server.url)
        assert b"".join(response.iter_raw()) == b"busy"
        response.close()
    assert len(seen) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 500])
def test_an_answer_is_an_answer(quick: list[float], status: int) -> None:
    with served(lambda _: Response(status=status)) as server, client() as one:
        assert one.get(server.url).status_code == status
    assert not quick


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "http://", "nonsense", "ftp://127.0.0.1/x", "http://a b/", "http://[x/", "http://é\0/"],
)
def test_what_cannot_be_reached(url: str) -> None:
    with client() as one, pytest.raises(Unreachable, match=r".+"):
        one.get(url)


@pytest.mark.usefixtures("quick")
def test_redirects_without_end() -> None:
    again = Response(status=302, headers={"Location": "/again"})
    with served(lambda _: again) as server, client() as one, pytest.raises(Unreachable):
        one.get(server.url)


@pytest.mark.usefixtures("quick")
def test_a_body_that_ends_early_is_asked_again() -> None:
    left = [1, 1]

    def answer(_: Request) -> Response:
        return Response(body=iter([b"half"] if left and left.pop() else [b"halfhalf"]), length=8)

    with served(answer) as server, client() as one:
        assert one.get(server.url).content == b"halfhalf"


def test_credentials_go_to_their_own_host_only() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        seen.append(request)
        return Response(body=b"there")

    with served(answer) as other:
        away = other.url.replace("127.0.0.1", "localhost")
        with served(lambda _: Response(status=302, headers={"Location": away})) as server, client() as one:
            assert one.get(server.url, auth=("me", "secret")).content == b"there"
    assert "authorization" not in seen[0].headers


def test_a_client_can_be_closed_twice() -> None:
    with served(lambda _: Response(body=b"x")) as server:
        one = Client(Proxies())
        assert one.get(server.url).content == b"x"
        one.close()
        one.close()
    Client(Proxies()).close()


def test_many_threads_share_a_client() -> None:
    with served(lambda request: Response(body=request.path.encode())) as server, client() as one:
        answers: dict[int, bytes] = {}

        def ask(number: int) -> None:
            answers[number] = one.get(f"{server.url}/{number}").content

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: f"/{number}".encode() for number in range(40)}


# -- the server ----------------------------------------------------------------------------------------------------


def plain(server: LoopbackServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)


def test_one_connection_serves_many_requests_and_heads() -> None:
    with served(lambda request: Response(body=request.path.encode(), headers={"X-Kind": "plain"})) as server:
        connection = plain(server)
        for method, path in (("GET", "/a"), ("HEAD", "/b"), ("GET", "/c?d=e"), ("GET", "/%2e%2e/")):
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
            expected = path.partition("?")[0].encode()
            assert body == (b"" if method == "HEAD" else expected)
            assert response.headers["Content-Length"] == str(len(expected))
            assert response.headers["X-Kind"] == "plain"
        connection.close()


def test_a_body_of_known_length_that_comes_short_is_seen_to_be_short() -> None:
    with served(lambda _: Response(body=iter([b"half"]), length=8)) as server:
        connection = plain(server)
        connection.request("GET", "/")
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
        connection.close()


def test_a_body_of_unknown_length_ends_with_the_connection() -> None:
    with served(lambda _: Response(body=iter([b"a" * 100_000, b"b"]))) as server:
        connection = plain(server)
        connection.request("GET", "/")
        response = connection.getresponse()
        assert response.headers["Connection"] == "close"
        assert len(response.read()) == 100_001
        connection.close()


def test_an_answer_that_fails_harms_no_other() -> None:
    def answer(request: Request) -> Response:
        if request.path == "/bad":
            raise RuntimeError
        return Response(body=b"fine")

    with served(answer) as server:
        connection = plain(server)
        connection.request("GET", "/bad")
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.getresponse()
        connection.close()
        connection.request("GET", "/good")
        assert connection.getresponse().read() == b"fine"
        connection.close()


def test_other_methods_are_refused() -> None:
    with served(lambda _: Response()) as server:
        connection = plain(server)
        connection.request("POST", "/", body=b"x")
        with suppress(http.client.HTTPException, OSError):
            assert connection.getresponse().status >= 400
        connection.close()


def test_many_at_once() -> None:
    together = threading.Barrier(20)

    def answer(_: Request) -> Response:
        together.wait(20)
        return Response(body=b"x")

    with served(answer) as server:
        answers: list[bytes] = []

        def ask() -> None:
            connection = plain(server)
            connection.request("GET", "/")
            answers.append(connection.getresponse().read())
            connection.close()

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [b"x"] * 20


# -- certificates --------------------------------------------------------------------------------------------------


def test_engines_are_given_the_roots_that_we_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = tmp_path / "mine.pem"
    mine.write_text("said before\n-----BEGIN CERTIFICATE-----\nTUlORQ==\n-----END CERTIFICATE-----\n")
    plain = net.certificates()
    monkeypatch.setenv("CURL_CA_BUNDLE", str(mine))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "absent.pem"))
    assert net.certificates().count("BEGIN CERTIFICATE") == plain.count("BEGIN CERTIFICATE") + 1
    assert "said before" not in net.certificates()
    given = Proxies().for_engine("http://r", ROUTER, Path("/roots.pem"))
    assert given["SSL_CERT_FILE"] == given["PIP_CERT"] == "/roots.pem"


BROKEN = "-----BEGIN CERTIFICATE-----\nTUlORQ==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "text",
    ["nothing", BROKEN],
)
def test_a_damaged_file_of_roots_does_not_stop_plain_http(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    mine = tmp_path / "mine.pem"
    mine.write_text(text)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(mine))
    with served(lambda _: Response(body=b"x")) as server, client() as one:
        assert one.get(server.url).content == b"x"
