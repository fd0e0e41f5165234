"""The index router: the one way by which an engine meets an index.

Engines see one fixed host through `HTTP_PROXY`, one stable path per origin. So their caches fit whatever the port,
`packages` holds for transitive requirements, credentials and mirrors stay out of command lines and locks, METADATA and
hashes come even where the origin omits them, and envforge knows which file came from where.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.state import Distribution
from envforge.system.http import Client, LoopbackServer, Request, Response, Unreachable, body

from . import pages, replies
from .artefacts import Artefact, build_tag, choose
from .downloads import save
from .origins import Routes, credentials, named
from .pages import Row
from .remote import metadata_in, pkg_info
from .replies import BUILT, HOST, STEP, file_url, index_url
from .sources import Failure, Lag, Listing, Sources

if TYPE_CHECKING:
    from .built import BuiltStore, BuiltWheel

# No retry is made by an engine for this status: the router has tried already, and its error says more.
_FAILED = 424
_NOTHING: Mapping[str, Stored] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Asked:
    """What one engine run asked for: to say afterwards what was being tried."""

    names: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class Router:
    """Serves the routes of one profile. ``folder``: for pages and METADATA; ``tags``: the target's wheel tags.

    ``shelf``: sha256 -> file, of those that need be asked of nobody.
    """

    def __init__(
        self,
        *,
        routes: Routes,
        folder: Path,
        client: Client,
        built: BuiltStore,
        tags: Sequence[str],
        offline: bool = False,
        shelf: Mapping[str, Stored] = _NOTHING,
    ) -> None:
        self.routes = routes
        self.built = built
        self._shelf = shelf
        self._sources = Sources(routes=routes, folder=folder, client=client, offline=offline)
        self._folder = folder
        self._offline = offline
        self._rank = {tag: place for place, tag in reversed(list(enumerate(tags)))}
        self._server = LoopbackServer(self._answer)
        self._only: tuple[str, ...] | None = None
        self._pinned: Mapping[str, tuple[Artefact, ...]] = {}
        self._bodies: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._files: dict[tuple[str, str], Artefact] = {}
        self._unasked: set[tuple[str, str]] = set()
        self._disguised: frozenset[str] = frozenset()
        self._variant = ""
        self._inside = ""
        self.asked = Asked()

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def proxy(self) -> str:
        return self._server.url

    # -- what an engine run may see ------------------------------------------------------------------------------

    def begin(
        self, only: tuple[str, ...] | None = None, *, unbuilt: tuple[str, ...] = (), variant: str = "", inside: str = ""
    ) -> Asked:
        """A new engine run, which may ask the profile's indexes in ``only`` (None = all).

        Sdists of the names in ``unbuilt`` cannot be built yet (their build needs the environment): they are shown as
        wheels with the metadata that the sdist states. ``variant`` and ``inside`` stand for what else goes into a
        build, outside and inside the environment: a wheel that was built from the same sdist with other is another.
        """
        disguised = frozenset(canonicalize_name(name) for name in unbuilt)
        if variant != self._variant or inside != self._inside:
            self._bodies = {}
        else:
            changed = disguised | self._disguised
            self._bodies = {place: body for place, body in self._bodies.items() if place[1] not in changed}
        self._only, self._disguised, self._variant, self._inside = only, disguised, variant, inside
        self.asked = Asked()
        return self.asked

    def urls(self, only: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Index URLs in order of priority, as an engine is given them; our own store first where it offers any."""
        keys = self.routes.order(only)
        return tuple(index_url(key) for key in ((BUILT, *keys) if self.built.offers else keys))

    def pin(self, artefacts: Iterable[Artefact]) -> str:
        """Serve exactly these files at one index, for an engine that knows nothing of several; returns its URL."""
        pinned: dict[str, tuple[Artefact, ...]] = {}
        for artefact in artefacts:
            pinned[artefact.name] = (*pinned.get(artefact.name, ()), artefact)
            self.offer(artefact)
        self._pinned = pinned
        return index_url(STEP)

    def offer(self, artefact: Artefact) -> str:
        """Make the file known (from a lock, say, whose page nobody asked for); returns its address for an engine."""
        self._files.setdefault((artefact.origin, artefact.id), artefact)
        return file_url(artefact)

    # -- what envforge itself wants to know ----------------------------------------------------------------------

    def find(self, name: str, version: str, only: tuple[str, ...] | None = None) -> Artefact:
        """The file that ``name==version`` comes from. Raises EnvforgeError where no allowed index has one."""
        own = self.built.offered(name)
        if own is not None and own.version == version:
            return self.own(own)
        keys = self.routes.allowed(name, only)
        for key in keys:
            listing = self._sources.listing(key, name)
            if not listing.exists:
                continue
            # A file nearly always spells its version as the resolver does; all are parsed only where no wheel does.
            for rows in ([row for row in listing.rows if version in row.file], listing.rows):
                row = choose(self._rows(key, name, rows), name, version, self._rank)
                if row is not None and (row.file.endswith(".whl") or rows is listing.rows):
                    return self._artefact(key, name, version, row, listing)
        raise EnvforgeError(
            "file-not-found",
            f"no file of `{name}` {version} fits this Python at {named(self.routes.origins[key].name for key in keys)}",
            hint="name another version, or add an index that serves one",
        )

    def locked(self, item: Distribution) -> Artefact:
        """The file that a lock names for an installed distribution. Raises EnvforgeError where it is out of reach."""
        if item.origin is not None and item.sha256 is not None:
            own = self.built.by_hash(item.sha256)
            if own is not None:
                return replace(self.own(own), index=item.index)
        origin = next((origin for origin in self.routes.origins.values() if origin.name == item.index), None)
        if origin is None or item.sha256 is None or item.file is None:
            raise EnvforgeError(
                "not-restorable",
                f"`{item.name}` {item.version} cannot be restored: its file is not known, or gone from the store",
                hint="build the profile anew with `envforge create --replace`",
            )
        place = (origin.key, item.sha256)
        # Where its metadata is here, so is most likely the file: its page is asked only when it must be fetched.
        asked = place in self._files or not (self._folder / "metadata" / item.sha256).exists()
        known = self._known(*place, item.file) if asked else None
        if known is not None:
            return replace(known, version=item.version)
        artefact = Artefact(
            name=item.name, version=item.version, file=item.file, id=item.sha256, origin=origin.key, index=item.index,
            sha256=item.sha256, size=item.size, sources=(item.url,) if item.url else (), url=item.url, build=item.build,
        )  # fmt: skip
        if not asked:
            self._unasked.add(place)
        return artefact

    def kept(self, artefact: Artefact) -> bool:
        """Whether the file itself is on the shelf, in the router's own cache or in envforge's own store."""
        held = artefact.built is not None or artefact.id in self._shelf
        return held or (self._folder / "files" / artefact.id).exists()

    def metadata(self, artefact: Artefact) -> bytes:
        """METADATA of a wheel, from the cache, its index or the wheel. Raises EnvforgeError naming index and name."""
        kept = self._folder / "metadata" / artefact.id
        try:
            return kept.read_bytes()
        except OSError:
            pass
        if artefact.built is not None:
            data = self.built.metadata(artefact.id)
        elif artefact.id in self._shelf:
            with self._shelf[artefact.id].open() as file:
                data = metadata_in(file)
        elif artefact.sdist is not None:
            data = pkg_info(self.fetch(artefact.sdist))
        else:
            data = self._sources.metadata(artefact)
        pages.write_atomically(kept, data)
        return data

    def lags(self, artefact: Artefact) -> tuple[Lag, ...]:
        """Mirrors that do not have the file."""
        return self._sources.lags(artefact)

    def empty(self) -> tuple[str, ...]:
        """Indexes that know none of the names that they were asked for."""
        return self._sources.empty()

    def hashed(self, artefact: Artefact) -> Artefact:
        """The same artefact with its sha256, fetching the file where its index gives none."""
        if artefact.sha256 is not None:
            return artefact
        kept = self.fetch(artefact)
        with kept.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        known = replace(artefact, sha256=digest, size=kept.stat().st_size)
        self._files[(artefact.origin, artefact.id)] = known
        return known

    def fetch(self, artefact: Artefact, into: Path | None = None, told: Callable[[int], None] | None = None) -> Path:
        """The file itself, in the cache from now on, or in ``into`` under its id where the cache lacks it.

        ``told``: of every bytes that came. Raises EnvforgeError where no source gives it as stated.
        """
        kept = self._folder / "files" / artefact.id
        if into is not None and not kept.exists():
            kept = into / artefact.id
        if kept.exists():
            return kept
        artefact = self._listed(artefact.origin, artefact)
        try:
            response = None if self._offline else self._sources.stream(artefact, {"Accept-Encoding": "identity"})
        except Unreachable as error:
            raise EnvforgeError(
                "index-unreachable",
                f"`{artefact.file}` cannot be fetched from the index `{artefact.index}`",
                cause=str(error),
                hint="check the network, or add a mirror of it",
            ) from error
        if response is None:
            raise EnvforgeError(
                "not-cached" if self._offline else "file-not-found",
                f"offline, `{artefact.file}` cannot be had"
                if self._offline
                else f"the index `{artefact.index}` lists `{artefact.file}` but does not serve it",
                hint="run it once without `--offline`" if self._offline else "ask again later, or add a mirror of it",
            )
        try:
            found = save(response, kept, artefact.sha256, told)
        except Unreachable as error:
            raise EnvforgeError(
                "file-broken",
                f"`{artefact.file}` cannot be fetched whole from the index `{artefact.index}`",
                cause=str(error),
                hint="ask again later, or add a mirror of it",
            ) from error
        if artefact.sha256 not in {None, found}:
            raise EnvforgeError(
                "hash-mismatch",
                f"`{artefact.file}` from the index `{artefact.index}` does not have the sha256 that its page states",
                cause=f"it has {found}, the page says {artefact.sha256}",
                hint="nothing of it was used; ask the index's keeper, or another mirror",
            )
        return kept

    def index_named(self, url: str) -> str | None:
        """The name of the index behind one of the router's addresses."""
        key = url.removeprefix(f"http://{HOST}/").partition("/")[0]
        origin = self.routes.origins.get(key)
        return origin.name if origin else None

    # -- the server ------------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Response:
        if request.host is not None and request.host != HOST:
            return Response(status=403, body=b"plain http reaches nothing but the profile's indexes\n")
        try:
            match unquote(request.path).strip("/").split("/"):
                case [key, "simple", name]:
                    return self._simple(key, canonicalize_name(name), request)
                case [key, "files", identity, file]:
                    return self._file(key, identity, file, request)
        except Exception as error:  # noqa: BLE001 - whatever an index sends, the engine gets an answer and the user a reason
            cause = getattr(error, "cause", None)
            reason = f"{error}: {cause}" if cause else str(error)
            self.asked.failures.append(Failure(kind="failed", index="", name=request.path, reason=reason))
            return Response(status=_FAILED, body=reason.encode())
        return Response(status=404)

    def _simple(self, key: str, name: str, request: Request) -> Response:
        if key == STEP:
            return replies.page([replies.entry(artefact) for artefact in self._pinned.get(name, ())], name, request)
        if key == BUILT:
            own = self.built.offered(name)
            return (
                replies.page([replies.entry(self.own(own))], name, request) if own is not None else Response(status=404)
            )
        if key not in self.routes.allowed(name, self._only) or self.built.offered(name) is not None:
            return Response(status=404)
        self.asked.names.append(name)
        listing = self._sources.listing(key, name)
        if listing.failure is not None:
            self.asked.failures.append(listing.failure)
            return Response(status=_FAILED, body=listing.failure.reason.encode())
        if not listing.exists:
            return Response(status=404)
        etag, body = self._body(key, name, listing)
        return replies.conditional(etag, body, request)

    def _body(self, key: str, name: str, listing: Listing) -> tuple[str, bytes]:
        kept = self._bodies.get((key, name))
        if kept is None:
            entries = [replies.row_entry(key, row) for row in self._rows(key, name, listing.rows)]
            kept = replies.rendered(entries, name)
            self._bodies[(key, name)] = kept
        return kept

    def _file(self, key: str, identity: str, file: str, request: Request) -> Response:
        artefact = self._known(key, identity, file.removesuffix(".metadata"))
        if artefact is None:
            return Response(status=404)
        if file.endswith(".metadata"):
            return Response(body=self.metadata(artefact), headers={"Content-Type": "text/plain", **replies.FOREVER})
        if artefact.id in self._shelf:
            return replies.whole_file(self._shelf[artefact.id].open, self._shelf[artefact.id].size)
        if self.kept(artefact):
            own = artefact.built is not None
            kept = self.built.path(artefact.id) if own else self._folder / "files" / artefact.id
            return replies.whole_file(lambda: kept.open("rb"), artefact.size)
        if self._offline:
            reason = f"`{artefact.file}` is not in the cache, and the network may not be asked"
            return self._fail("not-cached", artefact, reason)
        return self._remote_file(key, self._listed(key, artefact), request)

    def _listed(self, key: str, artefact: Artefact) -> Artefact:
        """A file that is known from a lock alone, as its page has it: with its mirrors, and where it lies today."""
        place = (key, artefact.id)
        if place in self._unasked:
            self._unasked.discard(place)
            self._files.pop(place, None)
            known = self._known(key, artefact.id, artefact.file)
            artefact = replace(known, version=artefact.version) if known is not None else artefact
            self._files[place] = artefact
        return artefact

    def _remote_file(self, key: str, artefact: Artefact, request: Request) -> Response:
        """The engine is sent to the file's own host, unless credentials, mirrors or plain http need the router."""
        only = artefact.sources[0] if len(artefact.sources) == 1 else None
        if only is not None and only.startswith("https:") and credentials(self.routes.origins[key], only) is None:
            return Response(status=302, headers={"Location": only, "Cache-Control": "no-cache"})
        passed = {name: value for name, value in request.headers.items() if name == "range"}
        try:
            response = self._sources.stream(artefact, {"Accept-Encoding": "identity", **passed})
        except Unreachable as error:
            return self._fail("unreachable", artefact, f"`{artefact.file}` cannot be fetched: {error}")
        if response is None:
            return self._fail("missing", artefact, f"it lists `{artefact.file}` but does not serve it")
        length = response.headers.get("content-length")
        headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", **replies.FOREVER}
        if "content-range" in response.headers:
            headers["Content-Range"] = response.headers["content-range"]
        return Response(
            status=response.status_code,
            body=body(response),
            headers=headers,
            length=int(length) if length and length.isdigit() else None,
        )

    def _fail(self, kind: str, artefact: Artefact, reason: str) -> Response:
        index = artefact.index or artefact.origin
        self.asked.failures.append(Failure(kind=kind, index=index, name=artefact.name, reason=reason))
        return Response(status=_FAILED, body=reason.encode())

    def _known(self, key: str, identity: str, file: str) -> Artefact | None:
        if (key, identity) in self._files:
            return self._files[(key, identity)]
        if key == BUILT:
            own = self.built.by_hash(identity)
            return self.own(own) if own else None
        name = canonicalize_name(file.split("-", maxsplit=1)[0] if file.endswith(".whl") else file.rpartition("-")[0])
        if key in self.routes.origins:
            listing = self._sources.listing(key, name)
            for row in (*self._rows(key, name, listing.rows), *listing.rows):
                if replies.identity(row) == identity:
                    return self._artefact(key, name, "", row, listing)
        return None

    def _rows(self, key: str, name: str, rows: Iterable[Row]) -> Iterator[Row]:
        """Rows of a page, an sdist that was built for this target replaced by its wheel."""
        for row in rows:
            own = self.built.of_source(self.source(replies.identity(row), name)) if _is_source(row) else None
            if own is None:
                hidden = name in self._disguised and _is_source(row)
                yield replies.disguise(row, name) if hidden else row
                continue
            self._files[(key, own.sha256)] = replace(self.own(own), origin=key, index=self.routes.origins[key].name)
            yield Row(
                file=own.file, url="", sha256=own.sha256, size=own.size, requires_python=row.requires_python,
                yanked=row.yanked, metadata=True,
            )  # fmt: skip

    def source(self, identity: str, name: str) -> str:
        """The key by which the store knows what is built from a file in this run."""
        return f"{identity}{self._inside if name in self._disguised else self._variant}"

    def _artefact(self, key: str, name: str, version: str, row: Row, listing: Listing) -> Artefact:
        identity = replies.identity(row)
        known = self._files.get((key, identity))
        if known is not None:
            return replace(known, version=version or known.version)
        original = next((each for each in listing.rows if f"sdist:{each.url}" == row.url), None)
        artefact = Artefact(
            name=name,
            version=version,
            file=row.file,
            id=identity,
            sdist=self._artefact(key, name, version, original, listing) if original else None,
            origin=key,
            index=self.routes.origins[key].name,
            sha256=row.sha256,
            size=row.size,
            sources=listing.addresses(row),
            url=listing.own_address(row),
            build=build_tag(row.file),
        )
        self._files[(key, identity)] = artefact
        return artefact

    def own(self, own: BuiltWheel) -> Artefact:
        """A wheel of envforge's own store as an artefact."""
        artefact = Artefact(
            name=own.name,
            version=own.version,
            file=own.file,
            id=own.sha256,
            origin=BUILT,
            index=None,
            sha256=own.sha256,
            size=own.size,
            build=build_tag(own.file),
            built=own.origin,
        )
        self._files[(BUILT, own.sha256)] = artefact
        return artefact


def _is_source(row: Row) -> bool:
    return not row.file.endswith(".whl")
