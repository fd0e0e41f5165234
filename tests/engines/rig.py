"""A router between real indexes and real engines, without the rest of the house."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import httpx
from kit.cli import PYTHON
from kit.index import Server

from envforge.engines.artefacts import Artefact
from envforge.engines.built import BuiltStore
from envforge.engines.origins import routes
from envforge.engines.phantom import Phantom
from envforge.engines.replies import HOST
from envforge.engines.router import Router
from envforge.engines.uv import Ask, Move, Uv
from envforge.model.bundle import Stored
from envforge.model.profile import Index, Profile
from envforge.model.settings import Settings
from envforge.probe import interpreter
from envforge.system.http import Client, Proxies

_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading roots takes long, and loopback has none
BASE = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
TAGS = interpreter.facts(BASE).tags
VERSION = interpreter.facts(BASE).version


def indexes(server: Server) -> tuple[Index, ...]:
    return tuple(Index(name=name, url=server.url(name)) for name in server.shelves)


@dataclass(frozen=True, kw_only=True)
class Rig:
    root: Path
    router: Router
    uv: Uv
    client: Client
    built: BuiltStore
    roots: Path

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask the router as an engine does: by its fixed host, through it as a proxy."""
        with httpx.Client(proxy=self.router.proxy, trust_env=False, verify=_NOBODY) as one:
            return one.get(f"http://{HOST}{path}", headers=headers)

    def page(self, name: str, index: str | None = None) -> httpx.Response:
        keys = self.router.routes.of_index
        return self.get(f"/{keys[index] if index else next(iter(keys.values()))}/simple/{name}/")

    def scratch(self) -> Path:
        number = len(list(self.root.glob("scratch-*")))
        place = self.root / f"scratch-{number}"
        place.mkdir()
        return place

    def resolve(self, *requirements: str, ask: Ask | None = None) -> tuple[Move, ...]:
        scratch = self.scratch()
        phantom = Phantom(scratch / "phantom", python=BASE, version=VERSION, platform="", runner=sys.executable)
        question = replace(ask or Ask(requirements=()), requirements=requirements)
        return self.uv.resolve(phantom.target, question, scratch, "step")

    def found(self, moves: Sequence[Move], only: tuple[str, ...] | None = None) -> list[Artefact]:
        return [self.router.find(move.name, move.version, only) for move in moves]

    def venv(self) -> Path:
        prefix = self.scratch() / "venv"
        self.uv.venv(prefix, BASE)
        return prefix

    def install(self, prefix: Path, artefacts: Sequence[Artefact]) -> str:
        """Install, see that it succeeds, and return what uv said."""
        log = self.scratch() / "log"
        completed = self.uv.install(prefix, [self.router.hashed(each) for each in artefacts], self.scratch(), log)
        assert completed.ok, completed.stderr
        return log.read_text()


def site(prefix: Path) -> Path:
    return next((prefix / "lib").glob("python*")) / "site-packages"


@contextmanager
def rig(
    root: Path,
    given: Sequence[Index],
    *,
    settings: Settings | None = None,
    offline: bool = False,
    default: str = "http://127.0.0.1:1/simple/",
    shelf: Mapping[str, Stored] = MappingProxyType({}),
) -> Iterator[Rig]:
    """An open router over ``given``; another rig at the same ``root`` shares its cache."""
    profile = Profile(name="demo", source="demo.yaml", text="", python=PYTHON, indexes=tuple(given))
    made = settings or Settings(home=root, cache=root / "cache")
    client = Client(Proxies())
    built = BuiltStore(root / "cache/built", "cp-test")
    router = Router(
        routes=routes(profile, made, default),
        folder=root / "cache/index",
        client=client,
        built=built,
        tags=TAGS,
        offline=offline,
        shelf=shelf,
    )
    roots = root / "roots.pem"
    roots.parent.mkdir(parents=True, exist_ok=True)
    roots.write_text("")
    try:
        with router:
            uv = Uv(cache=root / "cache/uv", router=router, proxies=Proxies(), roots=roots, link_mode="auto")
            yield Rig(root=root, router=router, uv=uv, client=client, built=built, roots=roots)
    finally:
        client.close()
