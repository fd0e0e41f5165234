"""A server on loopback for whatever a test serves, as well or badly as it wants: it remembers every request."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Literal, NamedTuple, Protocol
from urllib.parse import unquote

Kind = Literal["page", "file", "metadata", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with pages (by project name, or a channel's by path, as in ``linux-64/*``) or files (by file
    name, ``*.metadata`` too, or a channel's by path) that match.

    ``times`` None = always, else for that many requests, after which all is well. ``status``: answered instead.
    ``hang``: no answer until the server closes; ``reset``: the connection is cut; ``truncate``: half the bytes come;
    ``other``: a valid file of the same name with other contents (a wrong hash); ``rate``: bytes a second.
    """

    page: str | None = None
    file: str | None = None
    times: int | None = None
    status: int | None = None
    hang: bool = False
    reset: bool = False
    truncate: bool = False
    other: bool = False
    rate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came in, and how it was answered (None: not at all)."""

    index: str
    kind: Kind
    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    status: int | None


class Item(Protocol):
    """What can be served as a file. ``tampered``: another, valid file of the same name."""

    def tampered(self) -> bytes: ...

    def bytes(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as it is served."""

    item: Item
    data: bytes
    sha256: str


class Asked(NamedTuple):
    """What a path below a site's name means. ``open``: it is served without credentials."""

    kind: Kind
    name: str
    open: bool = False


class Site(Protocol):
    """What is served under one name of a `Server`: it knows where its files lie and what its pages say.

    ``auth``: ``user:password``. ``hidden``: patterns of what is on a page, but answers 404. ``start``: what is added
    to the name to make the address that a client is given.
    """

    auth: str | None
    hidden: Sequence[str]
    faults: Sequence[Fault]
    ranges: bool

    @property
    def items(self) -> Sequence[Item]: ...

    @property
    def start(self) -> str: ...

    def place(self, item: Item) -> str:
        """The name under which a file is asked for."""

    def asked(self, path: str) -> Asked: ...

    def listing(self, base: str, name: str, files: Mapping[str, File]) -> tuple[bytes, str] | None:
        """A page and its content type; ``base``: the site's address. None where there is nothing to list."""

    def content(self, name: str, files: Mapping[str, File], *, other: bool) -> bytes | None:
        """A file; ``other``: its tampered form."""


@dataclass(slots=True)
class Shelf:
    """A site with the files that lie there now."""

    site: Site
    files: dict[str, File] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Any number of sites under ``http://127.0.0.1:PORT/NAME/``; it remembers every request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, sites: Mapping[str, Site]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._begun: set[tuple[str, str]] = set()
        self._beginning = threading.Condition()
        self.shelves = {name: Shelf(site) for name, site in sites.items()}
        for name, site in sites.items():
            self.put(name, *site.items)

    def put(self, name: str, *items: Item) -> None:
        """Add files to a running site (a release appears), or replace those of the same name."""
        shelf = self.shelves[name]
        for item in items:
            data = item.bytes()
            shelf.files[shelf.site.place(item)] = File(item=item, data=data, sha256=hashlib.sha256(data).hexdigest())

    def withdraw(self, name: str, *patterns: str) -> None:
        """Take files off a running site, whose names match one of the patterns."""
        files = self.shelves[name].files
        for file in [file for file in files if any(fnmatchcase(file, pattern) for pattern in patterns)]:
            del files[file]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, name: str) -> str:
        """The address that a client is given: of an index's pages, or of a channel."""
        return f"{self.base}/{name}{self.shelves[name].site.start}"

    def begin(self, kind: str, name: str) -> None:
        with self._beginning:
            self._begun.add((kind, name))
            self._beginning.notify_all()

    def wait_for(self, kind: str, name: str, timeout: float = 60.0) -> None:
        """Wait until such a request has come in (its answer may still be on its way). Raises TimeoutError."""

        def come() -> bool:
            return any(kind == what and fnmatchcase(which, name) for what, which in self._begun)

        with self._beginning:
            if not self._beginning.wait_for(come, timeout):
                message = f"no {kind} {name} was asked for"
                raise TimeoutError(message)

    def note(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)

    def requests(self, kind: str | None = None, name: str = "*", index: str = "*") -> list[Request]:
        """The requests so far, those whose kind, name and index match."""
        with self._lock:
            found = list(self._requests)
        return [
            request
            for request in found
            if kind in (None, request.kind) and fnmatchcase(request.name, name) and fnmatchcase(request.index, index)
        ]

    def forget(self) -> None:
        """Start counting anew."""
        with self._lock:
            self._requests.clear()
        with self._beginning:
            self._begun.clear()

    def fault(self, shelf: Shelf, kind: str, name: str) -> Fault | None:
        """The first fault that applies now; a counted one is used up by this."""
        for position, fault in enumerate(shelf.site.faults):
            pattern = fault.page if kind == "page" else fault.file
            if pattern is None or not fnmatchcase(name, pattern):
                continue
            with self._lock:
                left = shelf.left.setdefault(position, fault.times if fault.times is not None else -1)
                if left == 0:
                    continue
                shelf.left[position] = left - 1
            return fault
        return None

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away in the middle are part of the game."""


@contextmanager
def serve(sites: Mapping[str, Site]) -> Iterator[Server]:
    """A running server for the time of a ``with``."""
    server = Server(sites)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Nothing on the screen: the server remembers."""

    def _answer(self) -> None:
        name, _, rest = unquote(self.path.split("?")[0]).strip("/").partition("/")
        shelf = self.server.shelves.get(name)
        asked = shelf.site.asked(rest) if shelf is not None else Asked("other", rest)
        self.server.begin(asked.kind, asked.name)
        status = None
        try:
            if shelf is None or asked.kind == "other" or not asked.name:
                status = self._error(HTTPStatus.NOT_FOUND)
            elif not self._allowed(shelf.site, open_=asked.open):
                status = self._error(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Basic realm="kit"'})
            else:
                fault = self.server.fault(shelf, asked.kind, asked.name)
                answer = self._page if asked.kind == "page" else self._file
                status = answer(name, shelf, asked.name, fault)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            self.server.note(
                Request(
                    index=name, kind=asked.kind, name=asked.name, method=self.command, path=self.path,
                    headers=dict(self.headers.items()), status=status,
                )
            )  # fmt: skip

    def _allowed(self, site: Site, *, open_: bool) -> bool:
        if site.auth is None or open_:
            return True
        return self.headers.get("Authorization") == "Basic " + base64.b64encode(site.auth.encode()).decode()

    def _page(self, name: str, shelf: Shelf, wanted: str, fault: Fault | None) -> int | None:
        listing = shelf.site.listing(f"{self.server.base}/{name}", wanted, shelf.files)
        if listing is None and fault is None:
            return self._error(HTTPStatus.NOT_FOUND)
        body, kind = listing or (b"", "text/plain")
        return self._send(body, kind, fault, ranges=False)

    def _file(self, _: str, shelf: Shelf, wanted: str, fault: Fault | None) -> int | None:
        hidden = any(fnmatchcase(wanted, pattern) for pattern in shelf.site.hidden)
        other = fault is not None and fault.other
        data = None if hidden else shelf.site.content(wanted, shelf.files, other=other)
        if data is None and (fault is None or fault.status is None):
            return self._error(HTTPStatus.NOT_FOUND)
        return self._send(data or b"", "application/octet-stream", fault, ranges=shelf.site.ranges)

    def _error(self, status: int, headers: Mapping[str, str] | None = None) -> int:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return int(status)

    def _send(self, data: bytes, kind: str, fault: Fault | None, *, ranges: bool) -> int | None:
        fault = fault or Fault()
        if fault.status is not None:
            return self._error(fault.status)
        if fault.hang:
            self.server.closing.wait()
            self.close_connection = True
            return None
        if fault.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return None
        status, body = HTTPStatus.OK, data
        extra = {"Accept-Ranges": "bytes"} if ranges else {}
        window = _window(self.headers.get("Range"), len(data)) if ranges else None
        if window is not None:
            start, end = window
            status, body = HTTPStatus.PARTIAL_CONTENT, data[start:end]
            extra["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **extra}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return int(status)
        if fault.truncate:
            body = body[: len(body) // 2]
            self.close_connection = True
        self._write(body, fault.rate)
        return int(status)

    def _write(self, body: bytes, rate: int | None) -> None:
        if rate is None:
            self.wfile.write(body)
            return
        step = max(1, rate // 20)
        for start in range(0, len(body), step):
            self.wfile.write(body[start : start + step])
            self.wfile.flush()
            sleep(0.05)


def _window(header: str | None, size: int) -> tuple[int, int] | None:
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if match is None or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size
