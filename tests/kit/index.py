"""Package indexes: real PEP 503 and PEP 691 pages, as good or as bare as a test wants them."""

from __future__ import annotations

import hashlib
import html
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Literal
from urllib.parse import quote

from .server import Asked, Fault, File, Item, Server, serve
from .wheels import Artefact, Sdist, Wheel, canonical

__all__ = ["Fault", "Index", "Server", "serve"]


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

    @property
    def items(self) -> Sequence[Artefact]:
        return self.artefacts

    @property
    def start(self) -> str:
        return f"/{self.path}/"

    def place(self, item: Item) -> str:
        return _artefact(item).filename

    def asked(self, path: str) -> Asked:
        folder, _, wanted = path.rpartition("/")
        if folder == self.path:
            return Asked("page", wanted)
        if folder in ("files", "elsewhere"):
            return Asked("metadata" if wanted.endswith(".metadata") else "file", wanted, folder == "elsewhere")
        return Asked("other", wanted)

    def listing(self, base: str, name: str, files: Mapping[str, File]) -> tuple[bytes, str] | None:
        """The page of a project."""
        of_it = {
            filename: file
            for filename, file in sorted(files.items())
            if canonical(_artefact(file.item).name) == canonical(name)
        }
        if not of_it:
            return None
        if self.page == "json":
            return _json_page(base, self, name, of_it), "application/vnd.pypi.simple.v1+json"
        return _html_page(base, self, name, of_it), "text/html"

    def content(self, name: str, files: Mapping[str, File], *, other: bool) -> bytes | None:
        file = files.get(name.removesuffix(".metadata"))
        if file is None:
            return None
        if name.endswith(".metadata"):
            return _metadata(file.data) if self.metadata else None
        return file.item.tampered() if other else file.data


def _artefact(item: Item) -> Artefact:
    assert isinstance(item, Wheel | Sdist)
    return item


@lru_cache(maxsize=1024)
def _metadata(data: bytes) -> bytes | None:
    if not data.startswith(b"PK"):
        return None
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/METADATA"):
                return archive.read(name)
    return None


def _address(base: str, index: Index, filename: str) -> str:
    if index.urls == "relative":
        return f"{'../' * (index.path.count('/') + 2)}files/{quote(filename)}"
    return f"{base}/{'files' if index.urls == 'absolute' else 'elsewhere'}/{quote(filename)}"


def _advertised(index: Index, file: File) -> str | None:
    """The sha256 of the metadata that a page says is served; None where it says nothing."""
    metadata = _metadata(file.data) if index.metadata is True else None
    return None if metadata is None else hashlib.sha256(metadata).hexdigest()


def _json_page(base: str, index: Index, project: str, files: Mapping[str, File]) -> bytes:
    rows = []
    for filename, file in files.items():
        row: dict[str, object] = {"filename": filename, "url": _address(base, index, filename)}
        row["hashes"] = {"sha256": file.sha256} if index.hashes else {}
        python = _artefact(file.item).python
        if python:
            row["requires-python"] = python
        if index.sizes:
            row["size"] = len(file.data)
        digest = _advertised(index, file)
        if digest:
            row["core-metadata"] = {"sha256": digest}
        rows.append(row)
    version = "1.1" if index.sizes else "1.0"
    page: dict[str, object] = {"meta": {"api-version": version}, "name": canonical(project), "files": rows}
    if index.sizes:
        page["versions"] = sorted({_artefact(file.item).version for file in files.values()})
    return json.dumps(page).encode()


def _html_page(base: str, index: Index, project: str, files: Mapping[str, File]) -> bytes:
    links = []
    for filename, file in files.items():
        address = _address(base, index, filename) + (f"#sha256={file.sha256}" if index.hashes else "")
        attributes = f'href="{html.escape(address)}"'
        python = _artefact(file.item).python
        if python:
            attributes += f' data-requires-python="{html.escape(python)}"'
        digest = _advertised(index, file)
        if digest:
            attributes += f' data-core-metadata="sha256={digest}"'
        links.append(f"<a {attributes}>{html.escape(filename)}</a><br>")
    title = html.escape(project)
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{''.join(links)}</body></html>".encode()
