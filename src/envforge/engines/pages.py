"""Index pages: PEP 691 JSON and PEP 503 HTML into rows, and what is kept of them between runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from uuid import uuid4

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ABSOLUTE = ("https://", "http://")
_HASH = re.compile(r"^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One file of an index. ``sha256`` None where the index omits it; ``size`` in bytes.

    ``metadata``: the index says that it serves the file's METADATA (PEP 658). ``yanked``: False, True or the reason.
    """

    file: str
    url: str
    sha256: str | None = None
    size: int | None = None
    requires_python: str | None = None
    yanked: bool | str = False
    metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All files of one name at one source. ``fresh_until``: seconds since 1970; ``etag``, ``modified``: for asking."""

    rows: tuple[Row, ...]
    fresh_until: float = 0.0
    etag: str | None = None
    modified: str | None = None


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
    try:
        files = json.loads(body)["files"]
        return tuple(
            Row(
                file=entry["filename"],
                url=entry["url"] if entry["url"].startswith(_ABSOLUTE) else urljoin(url, entry["url"]),
                sha256=_sha256(entry.get("hashes")),
                size=entry.get("size"),
                requires_python=_shared(entry.get("requires-python")),
                yanked=entry.get("yanked", False),
                metadata=bool(entry.get("core-metadata", entry.get("dist-info-metadata", False))),
            )
            for entry in files
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the JSON page is malformed ({error})"
        raise BadPageError(message) from error


def _shared(text: str | None) -> str | None:
    """One copy of a text that stands on thousands of rows."""
    return sys.intern(text) if isinstance(text, str) else None


def _sha256(hashes: Any) -> str | None:
    value = hashes.get("sha256") if isinstance(hashes, Mapping) else None
    return value.lower() if isinstance(value, str) and _HASH.match(value.lower()) else None


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
    anchors.feed(body.decode("utf-8", "replace"))
    return tuple(row for row in anchors.rows if row.file.endswith((".whl", ".tar.gz", ".zip")))


def fresh_until(headers: Mapping[str, str], now: float) -> float:
    """Until when a response may be used without asking again; ``now`` where the source does not say."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control or "no-store" in control:
        return now
    age = re.search(r"max-age=(\d+)", control)
    if age:
        return now + int(age[1]) - _number(headers.get("age"))
    try:
        return parsedate_to_datetime(headers["expires"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return now


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def load(path: Path) -> Page | None:
    """A page kept by `save`; None where there is none or it is damaged (it is then fetched anew)."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        data = json.loads(head)
        rows = parse(body, data["content_type"], data["url"])
        return Page(rows=rows, fresh_until=data["fresh_until"], etag=data["etag"], modified=data["modified"])
    except (OSError, ValueError, KeyError, TypeError, BadPageError):
        return None


def save(path: Path, page: Page, *, body: bytes, content_type: str, url: str) -> None:
    """Keep a page as it came from ``url``, with a line before it that says until when it is fresh."""
    head = {
        "fresh_until": page.fresh_until,
        "etag": page.etag,
        "modified": page.modified,
        "content_type": content_type,
        "url": url,
    }
    write_atomically(path, json.dumps(head).encode() + b"\n" + body)


def renew(path: Path, page: Page) -> None:
    """Keep that a page is fresh again, though nothing of it was sent."""
    head, _, body = path.read_bytes().partition(b"\n")
    write_atomically(path, json.dumps({**json.loads(head), "fresh_until": page.fresh_until}).encode() + b"\n" + body)


def write_atomically(path: Path, data: bytes) -> None:
    """Several envforge may fill one cache: a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
