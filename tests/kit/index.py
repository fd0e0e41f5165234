"""Package indexes on loopback: real PEP 503 and PEP 691 pages, as well or badly served as a test wants."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import socket
import struct
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from time import sleep
from typing import Literal
from urllib.parse import quote, unquote

from .wheels import Artefact, canonical

_CHUNK = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with pages (by project name) or files (by file name, ``*.metadata`` too) that match.

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


@dataclass(slots=True, kw_only=True)
class Index:
    """One index.

    ``path``: where under its name the pages lie, as in ``whl/cu126``. ``urls``: ``relative`` or ``absolute`` file
    addresses, or ``elsewhere``: absolute, under a path of their own, unprotected, as a content network would serve
    them. ``auth``: ``user:password``. ``metadata``: PEP 658; ``unadvertised`` = served, but the pages do not say so.
    ``hidden``: on the page, but the file answers 404.
    """

    artefacts: Sequence[Artefact] = ()
    page: Literal["html", "json"] = "json"
    metadata: bool | Literal["unadvertised"] = True
    hashes: bool = True
    sizes: bool = True
    ranges: bool = True
    path: str = "simple"
    urls: Literal["relative", "absolute", "elsewhere"] = "relative"
    auth: str | None = None
    hidden: Sequence[str] = ()
    faults: Sequence[Fault] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came in, and how it was answered (None: not at all)."""

    index: str
    kind: Literal["page", "file", "metadata", "other"]
    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    status: int | None


@dataclass(slots=True)
class _File:
    artefact: Artefact
    data: bytes
    sha256: str
    metadata: bytes | None


@dataclass(slots=True)
class _Shelf:
    index: Index
    files: dict[str, _File] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Any number of indexes under ``http://127.0.0.1:PORT/NAME/``; it remembers every request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, indexes: Mapping[str, Index]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._begun: set[tuple[str, str]] = set()
        self._beginning = threading.Condition()
        self.shelves = {name: _Shelf(index) for name, index in indexes.items()}
        for name, index in indexes.items():
            self.put(name, *index.artefacts)

    def put(self, name: str, *artefacts: Artefact) -> None:
        """Add files to a running index (a release appears), or replace those of the same file name."""
        for artefact in artefacts:
            data = artefact.bytes()
            self.shelves[name].files[artefact.filename] = _File(
                artefact, data, hashlib.sha256(data).hexdigest(), _metadata(data)
            )

    def withdraw(self, name: str, *patterns: str) -> None:
        """Take files off a running index, whose names match one of the patterns."""
        files = self.shelves[name].files
        for file in [file for file in files if any(fnmatchcase(file, pattern) for pattern in patterns)]:
            del files[file]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, name: str) -> str:
        """The address of an index's pages."""
        return f"{self.base}/{name}/{self.shelves[name].index.path}/"

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

    def fault(self, shelf: _Shelf, kind: str, name: str) -> Fault | None:
        """The first fault that applies now; a counted one is used up by this."""
        for position, fault in enumerate(shelf.index.faults):
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
def serve(indexes: Mapping[str, Index]) -> Iterator[Server]:
    """A running server for the time of a ``with``."""
    server = Server(indexes)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _metadata(data: bytes) -> bytes | None:
    if not data.startswith(b"PK"):
        return None
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/METADATA"):
                return archive.read(name)
    return None


class _Handler(BaseHTTPRequestHandler):
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
        kind, _, wanted = rest.rpartition("/")
        shelf = self.server.shelves.get(name)
        what: Literal["page", "file", "metadata", "other"] = "other"
        if shelf is not None and kind == shelf.index.path:
            what = "page"
        elif kind in ("files", "elsewhere"):
            what = "metadata" if wanted.endswith(".metadata") else "file"
        self.server.begin(what, wanted)
        status = None
        try:
            if shelf is None or what == "other" or not wanted:
                status = self._error(HTTPStatus.NOT_FOUND)
            elif not self._allowed(shelf.index, open_=kind == "elsewhere"):
                status = self._error(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Basic realm="kit"'})
            else:
                fault = self.server.fault(shelf, what, wanted)
                page = what == "page"
                status = self._page(name, shelf, wanted, fault) if page else self._file(shelf, wanted, fault)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            self.server.note(
                Request(
                    index=name, kind=what, name=wanted, method=self.command, path=self.path,
                    headers=dict(self.headers.items()), status=status,
                )
            )  # fmt: skip

    def _allowed(self, index: Index, *, open_: bool) -> bool:
        if index.auth is None or open_:
            return True
        return self.headers.get("Authorization") == "Basic " + base64.b64encode(index.auth.encode()).decode()

    def _page(self, name: str, shelf: _Shelf, project: str, fault: Fault | None) -> int | None:
        files = {
            filename: file
            for filename, file in sorted(shelf.files.items())
            if canonical(file.artefact.name) == canonical(project)
        }
        if not files and fault is None:
            return self._error(HTTPStatus.NOT_FOUND)
        if shelf.index.page == "json":
            body = _json_page(self.server, name, shelf.index, project, files)
            kind = "application/vnd.pypi.simple.v1+json"
        else:
            body = _html_page(self.server, name, shelf.index, project, files)
            kind = "text/html"
        return self._send(body, kind, shelf.index, fault, ranges=False)

    def _file(self, shelf: _Shelf, wanted: str, fault: Fault | None) -> int | None:
        file = shelf.files.get(wanted.removesuffix(".metadata"))
        hidden = any(fnmatchcase(wanted, pattern) for pattern in shelf.index.hidden)
        data = None
        if file is not None and not hidden:
            if not wanted.endswith(".metadata"):
                data = file.artefact.tampered() if fault is not None and fault.other else file.data
            elif shelf.index.metadata:
                data = file.metadata
        if data is None and (fault is None or fault.status is None):
            return self._error(HTTPStatus.NOT_FOUND)
        return self._send(data or b"", "application/octet-stream", shelf.index, fault, ranges=shelf.index.ranges)

    def _error(self, status: int, headers: Mapping[str, str] | None = None) -> int:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return int(status)

    def _send(self, data: bytes, kind: str, index: Index, fault: Fault | None, *, ranges: bool) -> int | None:
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


def _address(server: Server, name: str, index: Index, filename: str) -> str:
    if index.urls == "relative":
        return f"{'../' * (index.path.count('/') + 2)}files/{quote(filename)}"
    return f"{server.base}/{name}/{'files' if index.urls == 'absolute' else 'elsewhere'}/{quote(filename)}"


def _json_page(server: Server, name: str, index: Index, project: str, files: Mapping[str, _File]) -> bytes:
    rows = []
    for filename, file in files.items():
        row: dict[str, object] = {"filename": filename, "url": _address(server, name, index, filename)}
        row["hashes"] = {"sha256": file.sha256} if index.hashes else {}
        python = file.artefact.python
        if python:
            row["requires-python"] = python
        if index.sizes:
            row["size"] = len(file.data)
        if index.metadata is True and file.metadata is not None:
            row["core-metadata"] = {"sha256": hashlib.sha256(file.metadata).hexdigest()}
        rows.append(row)
    version = "1.1" if index.sizes else "1.0"
    page: dict[str, object] = {"meta": {"api-version": version}, "name": canonical(project), "files": rows}
    if index.sizes:
        page["versions"] = sorted({file.artefact.version for file in files.values()})
    return json.dumps(page).encode()


def _html_page(server: Server, name: str, index: Index, project: str, files: Mapping[str, _File]) -> bytes:
    links = []
    for filename, file in files.items():
        address = _address(server, name, index, filename) + (f"#sha256={file.sha256}" if index.hashes else "")
        attributes = f'href="{html.escape(address)}"'
        python = file.artefact.python
        if python:
            attributes += f' data-requires-python="{html.escape(python)}"'
        if index.metadata is True and file.metadata is not None:
            attributes += f' data-core-metadata="sha256={hashlib.sha256(file.metadata).hexdigest()}"'
        links.append(f"<a {attributes}>{html.escape(filename)}</a><br>")
    title = html.escape(project)
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{''.join(links)}</body></html>".encode()
