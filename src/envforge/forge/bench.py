"""The engines of one build, set up for one profile and one Python, and torn down together."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from packaging.utils import parse_wheel_filename

from envforge.engines import uv as uv_engine
from envforge.engines.built import BuiltStore, BuiltWheel
from envforge.engines.conda import Conda
from envforge.engines.origins import Routes, routes
from envforge.engines.pages import write_atomically
from envforge.engines.pip import Pip
from envforge.engines.router import Router
from envforge.engines.uv import Uv
from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.machine import InterpreterFacts
from envforge.model.profile import DEFAULT_INDEX, Profile
from envforge.model.progress import Listener
from envforge.model.settings import Settings
from envforge.model.state import State, is_package
from envforge.store.atomic import FULL, not_writable
from envforge.store.locking import share
from envforge.store.scratch import scratch
from envforge.system.http import Client, Proxies, certificates, proxies

from .ground import Ground
from .known import Known
from .shop import Shop


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """``scratch`` is a folder in the cache that goes when the bench does; ``facts`` are of the target's Python.

    ``python`` is the base interpreter, None where this host has none (then nothing can be built, only planned).
    ``conda`` is there for the backend conda only.
    """

    routes: Routes
    router: Router
    uv: Uv
    pip: Pip
    built: BuiltStore
    client: Client
    proxies: Proxies
    roots: Path
    conda: Conda | None
    facts: InterpreterFacts
    python: str | None
    scratch: Path
    cache: Path
    known: Known
    offline: bool
    tell: Listener

    def evict(self, names: Collection[str], state: State) -> bool:
        """Remove what the cache holds of these keys of ``state``; False where that failed."""
        if self.conda is not None:
            self.conda.evict(state[name] for name in names if is_package(name) and name in state)
        wheels = [name for name in names if not is_package(name)]
        return not wheels or self.uv.evict(wheels).ok

    def fits(self, own: BuiltWheel) -> bool:
        """Whether the target's Python takes the wheel."""
        return any(str(tag) in self.facts.tags for tag in parse_wheel_filename(own.file)[3])


@contextmanager
def bench(
    shop: Shop, profile: Profile, under: Ground, shelf: Mapping[str, Stored] = MappingProxyType({})
) -> Iterator[Bench]:
    """Open the router and the engines; ``shelf``: sha256 -> file, of those that were brought along.

    Raises EnvforgeError where the cache cannot be written.
    """
    with ExitStack() as stack:
        stack.enter_context(share(shop.settings.cache))
        try:
            folder = stack.enter_context(scratch(shop.settings.cache / "scratch"))
        except OSError as error:
            raise _not_writable(shop.settings.cache, error) from error
        with _open(shop, profile, under, folder, shelf) as opened:
            yield opened


def _not_writable(cache: Path, error: OSError) -> EnvforgeError:
    if error.errno in FULL:
        return not_writable(cache, error)
    return EnvforgeError(
        "cache-not-writable", f"the cache `{cache}` cannot be written", cause=str(error),
        hint="give it to your user, or set `cache` in the configuration or ENVFORGE_CACHE",
    )  # fmt: skip


@contextmanager
def _open(shop: Shop, profile: Profile, under: Ground, folder: Path, shelf: Mapping[str, Stored]) -> Iterator[Bench]:
    settings, cache, facts = shop.settings, shop.settings.cache, under.facts
    host = proxies(settings.proxy)
    client = Client(host)
    roots = cache / "certificates.pem"
    write_atomically(roots, certificates().encode())
    try:
        ways = routes(profile, settings, default_index(settings, profile, cache))
        built = BuiltStore(cache / "built", facts.target)
        router = Router(
            routes=ways, folder=cache / "index", client=client, built=built, tags=facts.tags, offline=settings.offline,
            shelf=shelf,
        )  # fmt: skip
        # A plan holds a quarter of a million rows of index pages, none of them in a cycle: looking for cycles among
        # them would take a third of its time.
        gc.disable()
        with router:
            uv = Uv(
                cache=cache / "uv",
                router=router,
                proxies=host,
                roots=roots,
                link_mode=settings.link_mode,
                allow=settings.allow_ambient,
            )
            pip = Pip(cache=cache / "pip", router=router, proxies=host, roots=roots, allow=settings.allow_ambient)
            yield Bench(
                routes=ways, router=router, uv=uv, pip=pip, built=built, client=client, proxies=host, roots=roots,
                conda=under.conda, facts=facts, python=under.python,
                scratch=folder, cache=cache, known=Known(cache / "known"), offline=settings.offline,
                tell=shop.tell,
            )  # fmt: skip
    finally:
        gc.enable()
        client.close()


def default_index(settings: Settings, profile: Profile, cache: Path) -> str:
    """What `pypi` means. Its URL is uv's to know; the answer is kept beside the cache of that uv."""
    named = {index.name: index.url for index in profile.indexes}
    if named.get(DEFAULT_INDEX):
        return named[DEFAULT_INDEX] or ""
    wanted = DEFAULT_INDEX in named or not named or DEFAULT_INDEX in settings.substitutes.values()
    if not wanted:
        return ""
    mirrors = settings.mirrors.get(DEFAULT_INDEX, ())
    if mirrors and "origin" not in mirrors:
        return mirrors[0]
    kept = cache / f"default-index-{Path(uv_engine.binary()).stat().st_mtime_ns}"
    try:
        known = kept.read_text()
    except OSError:
        known = ""
    if known:
        return known
    url = uv_engine.default_index()
    write_atomically(kept, url.encode())
    return url
