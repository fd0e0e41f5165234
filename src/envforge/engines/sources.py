"""The far side of the router: a name's page over all sources of an origin, a file's METADATA, a file's bytes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from envforge.model.errors import EnvforgeError
from envforge.system.clock import epoch
from envforge.system.http import Client, Unreachable, without_credentials

from . import pages, remote
from .artefacts import Artefact
from .origins import Origin, Routes, credentials
from .pages import Kept, Row

if TYPE_CHECKING:
    import httpx

_ABSENT = "absent"
_ENOUGH = 3  # so many files without a sidecar, and a host that does not advertise them is not asked for more


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An index that could not answer. ``kind``: unreachable, unauthorized, malformed, not-cached."""

    kind: str
    index: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """A mirror that lacks ``file``; ``served_by`` is where it comes from instead, None = nowhere."""

    index: str
    name: str
    file: str
    mirror: str
    served_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One name at one origin, over all its sources. With one source the rows say all, and the tables are empty.

    ``several``: file -> (source, address) in order; ``lacking``: file -> mirrors that do not list it.
    """

    rows: tuple[Row, ...]
    exists: bool
    several: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    index: str | None = None
    failure: Failure | None = None

    def addresses(self, row: Row) -> tuple[str, ...]:
        """Where the file is asked, in order."""
        return tuple(url for _, url in self.several.get(row.file, ())) or (row.url,)

    def own_address(self, row: Row) -> str | None:
        """Where it lies at the index itself, without credentials; None where only mirrors were asked."""
        if row.file not in self.several:
            return without_credentials(row.url) if self.index is not None else None
        own = (url for source, url in self.several[row.file] if source == self.index)
        return next((without_credentials(url) for url in own), None)


class Sources:
    """The origins of one profile, asked once a run for every name. ``folder``: where pages and METADATA are kept."""

    def __init__(self, *, routes: Routes, folder: Path, client: Client, offline: bool) -> None:
        self.routes = routes
        self.folder = folder
        self.offline = offline
        self._client = client
        self._listings: dict[tuple[str, str], Listing] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._guard = threading.Lock()
        self._no_sidecar: dict[str, int] = {}

    def listing(self, key: str, name: str) -> Listing:
        with self._guard:
            lock = self._locks.setdefault((key, name), threading.Lock())
        with lock:
            if (key, name) not in self._listings:
                self._listings[(key, name)] = self._ask(self.routes.origins[key], name)
            return self._listings[(key, name)]

    def empty(self) -> tuple[str, ...]:
        """Names of the indexes that answered, and knew none of the names that they were asked for."""
        answers: dict[str, bool] = {}
        for (key, _), listing in self._listings.items():
            if listing.failure is None:
                name = self.routes.origins[key].name
                answers[name] = answers.get(name, False) or listing.exists
        return tuple(sorted(name for name, knows in answers.items() if not knows))

    def _ask(self, origin: Origin, name: str) -> Listing:
        """The pages of all sources in one: a file that a mirror lacks comes from the next that has it."""
        found: dict[str, tuple[Row, ...]] = {}
        failure: Failure | None = None
        answered = []
        for source in origin.sources:
            try:
                page = self._page(origin, source, name)
            except _SourceError as error:
                failure = failure or Failure(kind=error.kind, index=origin.name, name=name, reason=str(error))
                continue
            answered.append(source)
            if page is not None:
                found[source] = page
        index = origin.url if origin.url in found else None
        if len(origin.sources) == 1:
            rows = found[origin.sources[0]] if found else ()
            return Listing(rows=rows, exists=bool(found), index=index, failure=None if answered else failure)
        merged: dict[str, Row] = {}
        several: dict[str, tuple[tuple[str, str], ...]] = {}
        for source, rows in found.items():
            for row in rows:
                first = merged.setdefault(row.file, row)
                if first.sha256 and row.sha256 and first.sha256 != row.sha256:
                    continue  # another file under the same name: the first source's word stands
                if first.sha256 is None and row.sha256 is not None:
                    merged[row.file] = row._replace(url=first.url)
                several[row.file] = (*several.get(row.file, ()), (source, row.url))
        lacking = {
            file: tuple(source for source in answered if source not in {place for place, _ in places})
            for file, places in several.items()
        }
        return Listing(
            rows=tuple(merged.values()),
            exists=bool(found),
            several=several,
            lacking={file: mirrors for file, mirrors in lacking.items() if mirrors},
            index=index,
            failure=None if answered else failure,
        )

    def _page(self, origin: Origin, source: str, name: str) -> tuple[Row, ...] | None:
        """The files of one source's page; None where it does not know the name. Raises _SourceError."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        place = self.folder / "pages" / digest / f"{name}.json"
        kept = pages.load(place)
        if kept is None and self.offline:
            kind = "not-cached"
            raise _SourceError(kind, f"the page of `{name}` is not in the cache, and the network may not be asked")
        if kept is not None and (self.offline or kept.fresh_until > epoch()):
            if kept.content_type == _ABSENT:
                return None
            try:
                return _rows(kept)
            except _SourceError:
                if self.offline:
                    raise
                kept = None  # damaged in the cache: asked for without condition
        page = self._fetch(origin, f"{source.rstrip('/')}/{name}/", kept)
        if page is None:
            # Offline, that it is not there must be known too.
            pages.save(place, Kept(url="", content_type=_ABSENT, body=b""))
            return None
        rows = _rows(page)
        pages.save(place, page)
        return rows

    def _fetch(self, origin: Origin, url: str, kept: Kept | None) -> Kept | None:
        """Ask for a page, on condition that it is not the one that is kept; None for 404. Raises _SourceError."""
        headers = {"Accept": pages.ACCEPT}
        if kept is not None and kept.content_type == _ABSENT:
            kept = None
        if kept is not None and kept.etag:
            headers["If-None-Match"] = kept.etag
        if kept is not None and kept.modified:
            headers["If-Modified-Since"] = kept.modified
        try:
            response = self._client.get(url, headers=headers, auth=credentials(origin, url))
        except Unreachable as error:
            kind = "unreachable"
            raise _SourceError(kind, str(error)) from error
        fresh_until = pages.fresh_until(response.headers, epoch())
        if response.status_code == 304 and kept is not None:
            return replace(kept, fresh_until=fresh_until)
        if response.status_code in {404, 410}:
            return None
        if response.status_code != 200:
            kind = "unauthorized" if response.status_code in {401, 403} else "unreachable"
            raise _SourceError(kind, f"status {response.status_code}")
        return Kept(
            url=without_credentials(str(response.url)),
            content_type=response.headers.get("content-type", ""),
            body=pages.without_userinfo(response.content),
            fresh_until=fresh_until,
            etag=_sendable(response.headers.get("etag")),
            modified=_sendable(response.headers.get("last-modified")),
        )

    def lags(self, artefact: Artefact) -> tuple[Lag, ...]:
        """Mirrors that do not have the file: by their page, or by their answer to a HEAD for it."""
        listing = self._listings.get((artefact.origin, artefact.name))
        origin = self.routes.origins.get(artefact.origin)
        if listing is None or origin is None or len(origin.sources) < 2 or self.offline:
            return ()
        missing = list(listing.lacking.get(artefact.file, ()))
        served: str | None = None
        for url in artefact.sources:
            try:
                status = self._client.get(url, method="HEAD", auth=credentials(origin, url)).status_code
            except Unreachable:
                status = 0
            if status in {404, 410}:
                missing.append(url.rpartition("/")[0])
            else:
                served = served or url
        return tuple(
            Lag(index=origin.name, name=artefact.name, file=artefact.file, mirror=mirror, served_by=served)
            for mirror in missing
        )

    def metadata(self, artefact: Artefact) -> bytes:
        if self.offline:
            raise EnvforgeError(
                "not-cached",
                f"the metadata of `{artefact.file}` is not in the cache, and the network may not be asked",
                hint="run the same command once without `--offline`",
            )
        origin = self.routes.origins[artefact.origin]
        reasons = []
        for url in artefact.sources:
            auth = credentials(origin, url)
            host = urlsplit(url).netloc
            listing = self._listings.get((artefact.origin, artefact.name))
            advertised = listing is not None and any(row.metadata for row in listing.rows if row.file == artefact.file)
            # A host that had none thrice is not asked for more, unless its page says that it has one.
            if advertised or self._no_sidecar.get(host, 0) < 3:
                data = remote.sidecar(self._client, url, auth)
                if data is not None:
                    return data
                self._no_sidecar[host] = self._no_sidecar.get(host, 0) + 1
            try:
                return remote.from_wheel(self._client, url, auth)
            except remote.NoMetadataError as error:
                reasons.append(f"{host}: {error}")
        raise EnvforgeError(
            "metadata-not-found",
            f"the metadata of `{artefact.file}` cannot be had from the index `{artefact.index}`",
            cause="; ".join(dict.fromkeys(reasons)),
            hint="ask again later, or add a mirror of that index to the configuration",
        )

    def stream(self, artefact: Artefact, headers: Mapping[str, str]) -> httpx.Response | None:
        """The first source that has the file, None where all say that they do not; those before it are known to lag.

        Raises Unreachable where none has it, and not all of them could be asked.
        """
        origin = self.routes.origins[artefact.origin]
        lost: Unreachable | None = None
        for url in artefact.sources:
            try:
                response = self._client.stream(url, headers=headers, auth=credentials(origin, url))
            except Unreachable as error:
                lost = error
                continue
            if response.status_code in {200, 206}:
                return response
            response.close()
        if lost is not None:
            raise lost
        return None


def _sendable(value: str | None) -> str | None:
    """A header that can be sent back; one with foreign letters is not asked with."""
    return value if value is not None and value.isascii() else None


def _rows(page: Kept) -> tuple[Row, ...]:
    try:
        return page.rows()
    except pages.BadPageError as error:
        kind = "malformed"
        raise _SourceError(kind, str(error)) from error


class _SourceError(Exception):
    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
