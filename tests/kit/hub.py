"""A hub of models on loopback, in the manner of both: what their libraries ask for, well or badly."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_LARGE = 100  # bytes from which a file counts as one of LFS


@dataclass(slots=True, kw_only=True)
class Hub:
    """``models``: name -> path -> bytes, all in each of ``revisions``.

    ``token``: without it every model is gated. ``held``: a path of which only the first half comes until the hub
    closes, ``tampered``: one that comes with other bytes of the same length.
    """

    models: dict[str, dict[str, bytes]]
    revisions: tuple[str, ...] = ("main", "master", COMMIT)
    token: str | None = None
    held: str | None = None
    tampered: str | None = None
    status: int | None = None
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    holding: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    def fetched(self, path: str) -> list[str]:
        """The ranges (empty = all of it) with which a file was asked for by GET."""
        found = [(url, headers) for url, headers in self.requests if url.startswith("GET ")]
        return [headers.get("Range", "") for url, headers in found if url.endswith((f"/{path}", f"FilePath={path}"))]


def listing(data: bytes) -> dict[str, Any]:
    """What a hub says of a file: size, git's sha1, and the sha256 of one that is in LFS."""
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return {"size": len(data), "git": blob, "sha256": hashlib.sha256(data).hexdigest(), "large": len(data) >= _LARGE}


@contextmanager
def serve(hub: Hub) -> Iterator[str]:
    """The address of a running hub for the time of a ``with``."""

    class Handler(_Handler):
        site = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        hub.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    site: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing on the screen: the hub remembers."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.site.requests.append((f"{self.command} {unquote(self.path)}", dict(self.headers.items())))
        try:
            self._answer(urlsplit(self.path))
        except OSError:
            self.close_connection = True

    def _answer(self, url: Any) -> None:
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        path = unquote(url.path)
        if self.site.status is not None:
            self._send(self.site.status, b"")
        elif match := re.fullmatch(r"/api/models/(.+)/(revision|tree)/([^/]+)", path):
            files = self._files(match[1], match[3])
            if files is not None:
                self._json(_info(match[1], files) if match[2] == "revision" else _tree(files))
        elif match := re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path):
            self._file(match[1], match[2], match[3])
        elif match := re.fullmatch(r"/api/v1/models/(.+)/repo/files", path):
            files = self._files(match[1], asked["Revision"])
            if files is not None:
                self._json({"Code": 200, "Success": True, "Data": {"Files": _entries(files)}})
        elif match := re.fullmatch(r"/api/v1/models/(.+)/repo", path):
            self._file(match[1], asked["Revision"], asked["FilePath"])
        elif match := re.fullmatch(r"/api/v1/models/([^/]+/[^/]+?)(/revisions)?", path):
            branches = [{"Revision": revision, "CreatedAt": 1} for revision in self.site.revisions]
            self._json({"Code": 200, "Success": True, "Data": {"RevisionMap": {"Branches": branches, "Tags": []}}})
        else:
            self._send(404, b"")

    def _files(self, name: str, revision: str) -> dict[str, bytes] | None:
        """The files of a model; None where an error was sent instead."""
        if name not in self.site.models:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif revision not in self.site.revisions:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif self.site.token is not None and self.headers.get("Authorization") != f"Bearer {self.site.token}":
            self._send(403, b"", {"X-Error-Code": "GatedRepo"})
        else:
            return self.site.models[name]
        return None

    def _file(self, name: str, revision: str, path: str) -> None:
        files = self._files(name, revision)
        if files is None:
            return
        data = files[path]
        about = listing(data)
        headers = {
            "ETag": f'"{about["sha256"] if about["large"] else about["git"]}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        if path == self.site.tampered:
            data = bytes(reversed(data))
        window = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if window is None:
            self._send(200, data, headers, held=path == self.site.held)
            return
        start, end = int(window[1]), min(len(data), int(window[2] or len(data)) + 1)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        self._send(206, data[start:end], headers, held=path == self.site.held)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, held: bool = False) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        half = len(body) // 2 if held else len(body)
        self.wfile.write(body[:half])
        self.wfile.flush()
        if held:
            self.site.holding.set()
            self.site.closing.wait()
            self.close_connection = True


def _info(name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    siblings = []
    for path, data in files.items():
        about = listing(data)
        lfs = {"sha256": about["sha256"], "size": about["size"], "pointerSize": 130} if about["large"] else None
        siblings.append({"rfilename": path, "size": about["size"], "blobId": about["git"], "lfs": lfs})
    return {"id": name, "modelId": name, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}


def _tree(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    entries = []
    for path, data in files.items():
        about = listing(data)
        lfs = {"oid": about["sha256"], "size": about["size"], "pointerSize": 130}
        entry = {"type": "file", "path": path, "size": about["size"], "oid": about["git"]}
        entries.append({**entry, "lfs": lfs} if about["large"] else entry)
    return entries


def _entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    folders = {path.rpartition("/")[0] for path in files} - {""}
    return [
        *({"Path": folder, "Name": folder, "Type": "tree", "Size": 0, "Sha256": ""} for folder in sorted(folders)),
        *(
            {
                "Path": path,
                "Name": path,
                "Type": "blob",
                "Revision": COMMIT,
                "Size": len(data),
                "Sha256": listing(data)["sha256"],
            }
            for path, data in files.items()
        ),
    ]
