"""The network: what the host says about proxies and certificates, a pooled client, and a server on loopback."""

from __future__ import annotations

import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from queue import LifoQueue
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from .environ import keep_secret, variables

if TYPE_CHECKING:
    import httpx

# Where distributions keep all roots in one file (Debian, Fedora, SUSE, Alpine).
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_CONNECTIONS = 8  # some DNS resolvers refuse many at once
_TRIES = 3
_LINE = 65536
_HEADERS = 100
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_PASSING = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The host's proxies, read once; ``socks://`` (which most libraries refuse) is written ``socks5://``.

    ``rewritten`` names the variables whose scheme had to be changed.
    """

    http: str | None = None
    https: str | None = None
    exempt: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()

    def for_engine(self, router: str, host: str, roots: Path) -> dict[str, str]:
        """Variables that send plain http to the router and https where the host says, trusting ``roots`` (PEM)."""
        proxied = {"HTTP_PROXY": router, "http_proxy": router, "SSL_CERT_FILE": str(roots), "PIP_CERT": str(roots)}
        if self.https and "*" not in self.exempt:
            proxied |= {"HTTPS_PROXY": self.https, "https_proxy": self.https}
            exempt = ",".join(entry for entry in self.exempt if not host.endswith(entry.lstrip("*.")))
            if exempt:
                proxied |= {"NO_PROXY": exempt, "no_proxy": exempt}
        return proxied


def proxies(override: str | None = None) -> Proxies:
    """What the process environment says; ``override`` (from the configuration) replaces it for both schemes."""
    found: dict[str, str] = {}
    rewritten: list[str] = []
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            value = variables().get(spelling, "").strip()
            if not value:
                continue
            if value.startswith("socks://"):
                rewritten.append(spelling)
            found.setdefault(name, value)
    for url in (override or "", *found.values()):
        user, _, password = url.rpartition("@")[0].rpartition("://")[2].partition(":")
        keep_secret(password or user, unquote(password or user))
    exempt = tuple(entry.strip() for entry in found.get("no_proxy", "").split(",") if entry.strip())
    if override:
        return Proxies(http=_usable(override), https=_usable(override), exempt=exempt)
    everything = found.get("all_proxy")
    return Proxies(
        http=_usable(found.get("http_proxy", everything)),
        https=_usable(found.get("https_proxy", everything)),
        exempt=exempt,
        rewritten=tuple(rewritten),
    )


def _usable(url: str | None) -> str | None:
    if not url:
        return None
    if url.startswith("socks://"):
        return "socks5://" + url.removeprefix("socks://")
    return url if "://" in url else f"http://{url}"


def without_credentials(url: str) -> str:
    """The URL as it may be shown or recorded: no user, no password, no query (where tokens stand), no fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Unreachable(Exception):  # noqa: N818 - a condition of the network, turned into an error where its meaning is known
    """No answer after every try; ``str()`` says why."""


class Client:
    """GET and HEAD over a few pooled connections, with retries and backoff for what passes by itself.

    Every connection is a client of its own, lent to one thread at a time: httpx's shared pool spends more time
    on its lock than on the network where many small answers are asked for at once.
    """

    def __init__(self, settings: Proxies) -> None:
        self._settings = settings
        self._idle: LifoQueue[httpx.Client | None] = LifoQueue()
        for _ in range(_CONNECTIONS):
            self._idle.put(None)
        self._streams: httpx.Client | None = None
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def _make(self) -> httpx.Client:
        import httpx  # noqa: PLC0415 - 80 ms that a warm or offline command need not pay

        with self._lock:
            self._context = self._context or _context()
        context = self._context

        def transport(proxy: str | None) -> httpx.HTTPTransport:
            try:
                return httpx.HTTPTransport(verify=context, proxy=proxy)
            except (ValueError, httpx.InvalidURL, ImportError) as error:
                shown = without_credentials(proxy or "")
                message = f"the proxy `{shown}` cannot be used: {error}"
                raise Unreachable(message) from error

        mounts: dict[str, httpx.BaseTransport | None] = {}
        if "*" not in self._settings.exempt:
            for scheme, proxy in (("http://", self._settings.http), ("https://", self._settings.https)):
                if proxy:
                    mounts[scheme] = transport(proxy)
            if mounts:
                for entry in (*self._settings.exempt, "127.0.0.1", "localhost"):
                    pattern = _pattern(entry)
                    if pattern is not None:
                        mounts[f"all://{pattern}"] = transport(None)
        return httpx.Client(
            transport=transport(None),
            mounts=mounts,
            trust_env=False,
            follow_redirects=True,
            timeout=httpx.Timeout(30.0, connect=10.0),
            headers={"User-Agent": "envforge"},
        )

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        method: str = "GET",
    ) -> httpx.Response:
        """The whole response, whatever its status. Raises `Unreachable`."""
        client = self._idle.get()
        try:
            client = client or self._make()
            return _send(client, method, url, headers, auth, stream=False)
        finally:
            self._idle.put(client)

    def stream(
        self, url: str, *, headers: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None
    ) -> httpx.Response:
        """A response whose body is still to be read with ``iter_raw`` and then closed. Raises `Unreachable`."""
        made = None if self._streams is not None else self._make()
        with self._lock:
            self._streams = self._streams or made
            client = self._streams
        assert client is not None  # noqa: S101 - made above where there was none
        return _send(client, "GET", url, headers, auth, stream=True)

    def close(self) -> None:
        """Close every connection that is not lent; one that is asked for later is made anew."""
        for _ in range(self._idle.qsize()):
            client = self._idle.get()
            if client is not None:
                client.close()
        for _ in range(_CONNECTIONS - self._idle.qsize()):
            self._idle.put(None)
        if self._streams is not None:
            self._streams.close()


def _send(
    client: httpx.Client,
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    auth: tuple[str, str] | None,
    *,
    stream: bool,
) -> httpx.Response:
    import httpx  # noqa: PLC0415 - whoever has a client has loaded it

    reason = "no answer"
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(0.3 * 3 ** (attempt - 1))
        try:
            request = client.build_request(method, url, headers=dict(headers or {}))
            response = client.send(request, auth=auth, stream=stream)
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            continue
        except (httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError, ValueError) as error:
            raise Unreachable(str(error)) from error
        if response.status_code not in _PASSING or attempt == _TRIES - 1:
            return response
        response.close()
    raise Unreachable(reason)


def body(response: httpx.Response) -> Iterator[bytes]:
    """The bytes of a streamed response as they were sent; it is closed in the end. Raises `Unreachable`."""
    import httpx  # noqa: PLC0415 - whoever has a response has loaded it

    try:
        yield from response.iter_raw(1 << 18)
    except httpx.HTTPError as error:
        raise Unreachable(f"the answer broke off ({error})") from error
    finally:
        response.close()


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    roots = certificates()
    try:
        context.load_verify_locations(cadata=roots)
    except ssl.SSLError:
        for root in _CERTIFICATE.findall(roots):
            with suppress(ssl.SSLError):  # one that cannot be read must not cost all others
                context.load_verify_locations(cadata=root)
    return context


def certificates() -> str:
    """All roots that the host trusts, as PEM: the system's, those that its variables name, and certifi's.

    uv and pip each have a store of their own, and neither is the host's: behind a proxy that signs anew they fail
    where everything else works. So they are given this.
    """
    import certifi  # noqa: PLC0415 - comes with httpx, needed only beside it

    named = (variables().get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"))
    system = ssl.get_default_verify_paths()
    places = (*_BUNDLES, system.cafile, system.openssl_cafile, certifi.where(), *named)
    found: dict[str, None] = {}
    for place in dict.fromkeys(os.path.realpath(place) for place in places if place):
        try:
            text = Path(place).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found |= dict.fromkeys(_CERTIFICATE.findall(text))
    return "".join(f"{certificate}\n" for certificate in found)


def _pattern(entry: str) -> str | None:
    """An entry of NO_PROXY as httpx writes it: a domain stands for its subdomains too; None for what it cannot say."""
    host = entry.removeprefix("*").lstrip(".")
    if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d+)?", host):
        return None
    return host if host.replace(".", "").isdigit() or host == "localhost" else f"*{host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``path`` begins with ``/``; ``host`` is None unless the client used the server as a proxy."""

    method: str
    host: str | None
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """``body`` is whole, or chunks with ``length`` bytes in all (None = unknown: the connection is then closed)."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class LoopbackServer:
    """Serves ``answer`` on 127.0.0.1 at a port of the system's choice, from `start` to `stop`."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._server = _Server(("127.0.0.1", 0), _handler(answer), bind_and_activate=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._server.server_bind()
        self._server.server_activate()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(answer: Callable[[Request], Response]) -> type[StreamRequestHandler]:
    class Handler(StreamRequestHandler):
        """HTTP/1.1 as far as engines speak it to a proxy: GET and HEAD, kept alive; leaner than http.server's."""

        wbufsize = -1  # headers and a small body leave in one packet
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while (request := self._read()) is not None and self._reply(request, answer(request)):
                pass

        def _read(self) -> Request | None:
            """The next request; None at the end of the connection, or for what is no request."""
            words = self.rfile.readline(_LINE).decode("latin-1").split()
            headers: dict[str, str] = {}
            while (line := self.rfile.readline(_LINE)) not in {b"\r\n", b"\n"}:
                if not line or len(headers) > _HEADERS:
                    return None
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if len(words) != 3 or words[0] not in {"GET", "HEAD"}:
                return None
            parts = urlsplit(words[1])
            return Request(method=words[0], host=parts.netloc or None, path=parts.path, headers=headers)

        def _reply(self, request: Request, response: Response) -> bool:
            """Send the response; False where the connection ends with it."""
            body = response.body
            length = len(body) if isinstance(body, bytes) else response.length
            stays = length is not None and request.headers.get("connection", "").lower() != "close"
            lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Other')}"]
            # pip keeps no answer without a date, however long it may be kept.
            lines.append(f"Date: {formatdate(usegmt=True)}")
            # An address out of a page may hold a line break: it stays one header.
            lines += [f"{name}: {''.join(value.splitlines())}" for name, value in response.headers.items()]
            lines += [f"Content-Length: {length}"] if length is not None else []
            lines += [] if stays else ["Connection: close"]
            self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
            if request.method != "HEAD" and response.status != 304:
                sent = 0
                for chunk in (body,) if isinstance(body, bytes) else body:
                    self.wfile.write(chunk)
                    sent += len(chunk)
                # After a short body the client must see the end, not wait for the rest.
                stays = stays and sent == length
            self.wfile.flush()
            return stays

    return Handler
