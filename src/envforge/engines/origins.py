"""Which source answers for which name: a profile's indexes after substitutes and mirrors, and who may serve what."""

from __future__ import annotations

import hashlib
import netrc
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from envforge.model.errors import UsageError
from envforge.model.profile import DEFAULT_INDEX, Index, Profile
from envforge.model.settings import Settings
from envforge.system.environ import variables

ORIGIN = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A source of files. ``key`` is stable for its URL, so profiles and ports share what an engine cached.

    ``url`` is the index itself, ``sources`` where it is asked (mirrors in order, the index where it takes part).
    """

    name: str
    key: str
    url: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The sources of one profile. ``of_index``: index of the profile -> origin key; ``origins``: key -> origin."""

    indexes: tuple[Index, ...]
    origins: Mapping[str, Origin]
    of_index: Mapping[str, str]

    def allowed(self, name: str, only: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Keys of the origins that may serve the canonical ``name``, in order; ``only``: index names of one step.

        An index that lists the name is the only kind that serves it; one that lists any serves nothing else.
        """
        listing = [index for index in self.indexes if any(fnmatchcase(name, item) for item in index.packages)]
        chosen = listing or [index for index in self.indexes if not index.packages]
        keys = (self.of_index[index.name] for index in chosen if only is None or index.name in only)
        return tuple(dict.fromkeys(keys))

    def order(self, only: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Keys of all origins that a step may ask."""
        keys = (self.of_index[index.name] for index in self.indexes if only is None or index.name in only)
        return tuple(dict.fromkeys(keys))


def key_of(url: str) -> str:
    return hashlib.sha256(_canonical(url).encode()).hexdigest()[:16]


def routes(profile: Profile, settings: Settings, default_url: str) -> Routes:
    """The routes of a profile. ``default_url`` is what `pypi` means where nothing says otherwise.

    Raises UsageError where a substitute names an index that nobody knows.
    """
    indexes = profile.indexes or (Index(name=DEFAULT_INDEX),)
    known = {index.name: index for index in indexes}
    origins: dict[str, Origin] = {}
    of_index: dict[str, str] = {}
    for index in indexes:
        name = settings.substitutes.get(index.name, index.name)
        target = known.get(name) or (Index(name=DEFAULT_INDEX) if name == DEFAULT_INDEX else None)
        if target is None:
            raise UsageError(
                "unknown-substitute",
                f"the configuration puts `{name}` for the index `{index.name}`; `{profile.name}` has no such index",
                hint=f"name one of {', '.join(f'`{other}`' for other in sorted({*known, DEFAULT_INDEX}))}",
            )
        url = target.url or default_url
        key = key_of(url)
        mirrors = settings.mirrors.get(name) or settings.mirrors.get(url) or (ORIGIN,)
        sources = tuple(url if mirror == ORIGIN else mirror for mirror in mirrors)
        origins.setdefault(key, Origin(name=name, key=key, url=url, sources=sources))
        of_index[index.name] = key
    return Routes(indexes=tuple(indexes), origins=origins, of_index=of_index)


def credentials(origin: Origin, url: str) -> tuple[str, str] | None:
    """User and password for ``url``, from the index's variables (same host and scheme only) or from netrc."""
    stem = variable_stem(origin.name)
    user, password = variables().get(f"{stem}_USERNAME"), variables().get(f"{stem}_PASSWORD")
    asked = _place(url)
    if (user or password) and any(_place(source) == asked for source in (origin.url, *origin.sources)):
        return (user or "", password or "")
    try:
        known = netrc.netrc(variables().get("NETRC"))
    except (OSError, ValueError, netrc.NetrcParseError):
        return None
    entry = known.hosts.get(asked[1])  # a `default` entry is for logins, not for whatever host a page names
    return (entry[0], entry[2] or "") if entry else None


def variable_stem(name: str) -> str:
    """What the variables for the credentials of an index or channel begin with."""
    return "ENVFORGE_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _place(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port, as far as they tell one server from another."""
    try:
        parts = urlsplit(url)
        return (parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme))
    except ValueError:
        return ("", "", None)


def _canonical(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"


def named(names: Iterable[str]) -> str:
    """Index names for a sentence."""
    return ", ".join(f"`{name}`" for name in names)
