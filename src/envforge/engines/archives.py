"""The archives of conda packages: fetched for who carries them, and served to rattler by who was given them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.state import Distribution
from envforge.system.http import Client, LoopbackServer, Request, Response, Unreachable

from .channels import Channel
from .downloads import save
from .origins import ORIGIN
from .replies import whole_file


def fetch(
    client: Client,
    channels: Iterable[Channel],
    item: Distribution,
    into: Path,
    told: Callable[[int], None] | None = None,
    *,
    offline: bool,
) -> Path:
    """The archive of a conda package, in ``into`` under its sha256 unless its channel is a folder of this host.

    rattler keeps none. What lies there already is taken, and not hashed again.
    ``told``: of every bytes that came. Raises EnvforgeError ``not-cached``, ``package-gone``, OSError.
    """
    kept = into / str(item.sha256)
    channel = next((each for each in channels if each.name == item.index), None)
    urls = _addresses(channel, item)
    local = (Path(unquote(urlsplit(url).path)) for url in urls if url.startswith("file:"))
    there = next((path for path in (kept, *local) if path.is_file()), None)
    if there is not None:
        return there
    if offline:
        raise EnvforgeError("not-cached", f"offline, `{item.file}` cannot be had", hint="run it without `--offline`")
    reasons = []
    for url in urls:
        auth = channel.credentials(url) if channel is not None else None
        try:
            response = client.stream(url, headers={"Accept-Encoding": "identity"}, auth=auth)
            if response.status_code == 200:
                found = save(response, kept, item.sha256, told)
                if found == item.sha256:
                    return kept
                reason = f"what it gives has the sha256 {found}"
            else:
                response.close()
                reason = f"status {response.status_code}"
        except Unreachable as error:
            reason = str(error)
        reasons.append(f"{urlsplit(url).netloc}: {reason}")
    raise EnvforgeError(
        "package-gone",
        f"`{item.file}` cannot be had from the channel `{item.index}`",
        cause="; ".join(dict.fromkeys(reasons)),
        hint="wait until the mirror has caught up, or put `origin` at the end of its `mirrors`",
    )


def _addresses(channel: Channel | None, item: Distribution) -> list[str]:
    place, tail = _split(item)
    sources = channel.sources if channel is not None else (ORIGIN,)
    return [f"{place if source == ORIGIN else source.rstrip('/')}/{tail}" for source in sources]


def _split(item: Distribution) -> tuple[str, str]:
    """Where the channel of a package lies, and what stands behind it: ``linux-64/FILE``."""
    place, subdir, file = str(item.url).rsplit("/", 2)
    return place, f"{subdir}/{file}"


@contextmanager
def served(items: Iterable[Distribution], shelf: Mapping[str, Stored]) -> Iterator[Mapping[str, str]]:
    """Those archives of ``items`` that are on ``shelf`` (sha256 -> file), on loopback for as long as the block lasts.

    Where a channel lies, with a slash at its end -> where it is asked instead.
    """
    files: dict[str, Stored] = {}
    places: dict[str, str] = {}
    for item in items:
        if item.sha256 is not None and item.sha256 in shelf:
            place, tail = _split(item)
            key = places.setdefault(f"{place}/", f"/{len(places)}")
            files[unquote(f"{key}/{tail}")] = shelf[item.sha256]

    def answer(request: Request) -> Response:
        file = files.get(unquote(request.path))
        return whole_file(file.open, file.size) if file is not None else Response(status=404)

    if not files:
        yield {}
        return
    server = LoopbackServer(answer)
    server.start()
    try:
        yield {place: f"{server.url}{key}" for place, key in places.items()}
    finally:
        server.stop()
