"""Index pages: PEP 691 JSON and PEP 503 HTML into rows, and what is kept of them between runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit
from uuid import uuid4

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ABSOLUTE = ("https://", "http://")


class Row(NamedTuple):
    """One file of an index. ``sha256`` None where the index omits it; ``size`` in bytes.

    ``metadata``: the index says that it serves the file's METADATA (PEP 658). ``yanked``: False, True or the reason.
    A tuple, since one plan makes a quarter of a million of them.
    """

    file: str
    url: str
    sha256: str | None = None
    size: int | None = None
    requires_python: str | None = None
    yanked: bool | str = False
    metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A page as it came from ``url``. ``fresh_until``: seconds since 1970; ``etag``, ``modified``: for asking again."""

    url: str
    content_type: str
    body: bytes
    fresh_until: float = 0.0
    etag: str | None = None
    modified: str | None = None

    def rows(self) -> tuple[Row, ...]:
        """All files that it lists. Raises BadPageError."""
        try:
            return parse(self.body, self.content_type, self.url)
        except (ValueError, RecursionError) as error:
            raise BadPageError(str(error)) from error


class BadPageError(Exception):
    """What came is no index page; ``str()`` says why."""


def parse(body: bytes, content_type: str, url: str) -> tuple[Row, ...]:
    """Rows of a page served at ``url``. Raises BadPageError."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("+json") or kind == "application/json":
        return _json(body, url)
    if "html" in kind:
        return _html(body, url)
    message = f"the content type `{kind or 'none'}` is no index page"
    raise BadPageError(message)


def _json(body: bytes, url: str) -> tuple[Row, ...]:
    from pydantic_core import from_json  # noqa: PLC0415 - comes with pydantic; reads JSON in half of json's time

    try:
        return tuple(
            [
                Row(
                    entry["filename"],
                    entry["url"] if entry["url"].startswith(_ABSOLUTE) else urljoin(url, entry["url"]),
                    _sha256(entry.get("hashes")),
                    size if isinstance(size := entry.get("size"), int) else None,
                    python if isinstance(python := entry.get("requires-python"), str) else None,
                    yanked if isinstance(yanked := entry.get("yanked", False), bool | str) else bool(yanked),
                    bool(entry.get("core-metadata", entry.get("dist-info-metadata", False))),
                )
                for entry in from_json(body)["files"]
                if "/" not in entry["filename"]
            ]
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the JSON page is malformed ({error})"
        raise BadPageError(message) from error


def _sha256(hashes: Any) -> str | None:
    """The digest in lower case; it becomes part of a path, so it is one or nothing."""
    value = hashes.get("sha256") if isinstance(hashes, dict) else None
    return (
        value.lower() if isinstance(value, str) and len(value) == 64 and value.isascii() and value.isalnum() else None
    )


class _Anchors(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.rows: list[Row] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "base" and given.get("href"):
            self.base = urljoin(self.base, given["href"] or "")
        if tag != "a" or not given.get("href"):
            return
        address = urljoin(self.base, given["href"] or "")
        parts = urlsplit(address)
        algorithm, _, digest = parts.fragment.partition("=")
        yanked: bool | str = "data-yanked" in given and (given["data-yanked"] or True)
        self.rows.append(
            Row(
                file=unquote(parts.path.rsplit("/", 1)[-1]),
                url=address.partition("#")[0],
                sha256=_sha256({algorithm: digest}),
                requires_python=given.get("data-requires-python"),
                yanked=yanked,
                metadata=given.get("data-core-metadata", given.get("data-dist-info-metadata", "false")) != "false",
            )
        )


def _html(body: bytes, url: str) -> tuple[Row, ...]:
    anchors = _Anchors(url)
    try:
        anchors.feed(body.decode("utf-8", "replace"))
    except ValueError as error:
        message = f"a link of the page is none ({error})"
        raise BadPageError(message) from error
    return tuple(row for row in anchors.rows if row.file.endswith((".whl", ".tar.gz", ".zip")))


def fresh_until(headers: Mapping[str, str], now: float) -> float:
    """Until when a response may be used without asking again; ``now`` where the source does not say."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control or "no-store" in control:
        return now
    age = re.search(r"max-age=(\d{1,9})(?!\d)", control)
    if age:
        return now + int(age[1]) - _number(headers.get("age"))
    try:
        return parsedate_to_datetime(headers["expires"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return now


def _number(text: str | None) -> int:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else 0


def load(path: Path) -> Kept | None:
    """A page kept by `save`; None where there is none or it is damaged (it is then fetched anew)."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        return Kept(body=body, **json.loads(head))
    except (OSError, ValueError, TypeError):
        return None


def save(path: Path, page: Kept) -> None:
    """Keep a page: its body as it came, and a line before it with the rest."""
    head = {name: getattr(page, name) for name in ("url", "content_type", "fresh_until", "etag", "modified")}
    write_atomically(path, json.dumps(head).encode() + b"\n" + page.body)


_USERINFO = re.compile(rb"(https?://)[^/@\s\"'<>]*@")


def without_userinfo(body: bytes) -> bytes:
    """A page without the credentials that some indexes write into the addresses of their files."""
    return _USERINFO.sub(rb"\1", body) if b"@" in body else body


def write_atomically(path: Path, data: bytes) -> None:
    """Several envforge may fill one cache: a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
