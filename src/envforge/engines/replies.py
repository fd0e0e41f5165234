"""What the router answers with: pages, entries of files, bytes; and the addresses that engines see."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import quote

from envforge.system.http import Request, Response

from .artefacts import Artefact, version_of
from .pages import Row

HOST = "index.envforge.invalid"
BUILT = "built"
STEP = "step"
_JSON = "application/vnd.pypi.simple.v1+json"
_plain = re.compile(r"[A-Za-z0-9._-]+").fullmatch
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def index_url(key: str) -> str:
    return f"http://{HOST}/{key}/simple/"


def file_url(artefact: Artefact) -> str:
    return f"http://{HOST}/{artefact.origin}/files/{artefact.id}/{quote(artefact.file)}"


def identity(row: Row) -> str:
    return row.sha256 or "url-" + hashlib.sha256(row.url.encode()).hexdigest()


def row_entry(key: str, row: Row) -> dict[str, object]:
    file = row.file if _plain(row.file) else quote(row.file)
    entry: dict[str, object] = {
        "filename": row.file,
        "url": f"http://{HOST}/{key}/files/{row.sha256 or identity(row)}/{file}",
        "hashes": {"sha256": row.sha256} if row.sha256 else {},
        "yanked": row.yanked,
    }
    if row.file.endswith(".whl"):
        entry["core-metadata"] = True
    if row.requires_python is not None:
        entry["requires-python"] = row.requires_python
    if row.size is not None:
        entry["size"] = row.size
    return entry


def disguise(row: Row, name: str) -> Row:
    version = version_of(row.file, name)
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return row._replace(file=file, url=f"sdist:{row.url}", sha256=None, size=None, metadata=True)


def entry(artefact: Artefact) -> dict[str, object]:
    return {
        "filename": artefact.file,
        "url": file_url(artefact),
        "hashes": {"sha256": artefact.sha256},
        "core-metadata": True,
        **({"size": artefact.size} if artefact.size is not None else {}),
    }


def rendered(entries: list[dict[str, object]], name: str) -> tuple[str, bytes]:
    from pydantic_core import to_json  # noqa: PLC0415 - comes with pydantic; writes JSON in half of json's time

    body = to_json({"meta": {"api-version": "1.1"}, "name": name, "files": entries})
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"', body


def page(entries: list[dict[str, object]], name: str, request: Request) -> Response:
    return conditional(*rendered(entries, name), request)


def conditional(etag: str, body: bytes, request: Request) -> Response:
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status=304, headers=headers)
    return Response(body=body, headers={"Content-Type": _JSON, **headers})


def whole_file(opened: Callable[[], BinaryIO], size: int | None) -> Response:
    def chunks() -> Iterator[bytes]:
        with opened() as file:
            while chunk := file.read(1 << 20):
                yield chunk

    return Response(body=chunks(), length=size, headers={"Content-Type": "application/octet-stream", **FOREVER})
