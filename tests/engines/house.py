"""Plans and builds in this process, of profiles that a test writes, on the kit's indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from kit.cli import PYTHON
from kit.index import Server

from envforge.forge.create import create
from envforge.forge.plan import plan
from envforge.forge.shop import Shop
from envforge.forge.update import update
from envforge.model.plan import Plan
from envforge.model.profile import Profile
from envforge.model.progress import Progress
from envforge.model.result import Build, Result
from envforge.model.settings import Settings
from envforge.model.state import State
from envforge.profiles import loader
from envforge.store.layout import Home

OWN = {"pip", "setuptools"}  # what a Python brings


def versions(state: State) -> dict[str, str]:
    return {name: item.version for name, item in state.items() if name not in OWN}


class House:
    """``folder`` is the profile's; ``told``: what a user would have seen; ``only``: the indexes of the profile."""

    def __init__(self, root: Path, server: Server, *, only: Sequence[str] | None = None, **settings: Any) -> None:
        self.root = root
        self.server = server
        self.folder = root / "work"
        self.folder.mkdir(exist_ok=True)
        self.told: list[Progress] = []
        home = root / "forge"
        self.settings = Settings(**{"home": home, "cache": home / "cache", **settings})
        self.shop = Shop(settings=self.settings, home=Home(home, self.settings.cache), tell=self.told.append)
        self.indexes = [{"name": name, "url": server.url(name)} for name in (only or server.shelves)]

    def offline(self) -> House:
        other = House(self.root, self.server, **{**_fields(self.settings), "offline": True})
        other.indexes = self.indexes
        return other

    def profile(self, steps: Sequence[Mapping[str, Any]], **more: Any) -> Profile:
        data = {"schema": 1, "name": "demo", "python": PYTHON, "indexes": self.indexes, "steps": [*steps], **more}
        path = self.folder / "demo.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
        return loader.load(path)

    def plan(self, steps: Sequence[Mapping[str, Any]], *, no_build: bool = False, **more: Any) -> Plan:
        return plan(self.shop, self.profile(steps, **more), no_build=no_build).data

    def create(
        self, steps: Sequence[Mapping[str, Any]], *, again: bool = False, name: str | None = None, **more: Any
    ) -> Result[Build]:
        return create(self.shop, self.profile(steps, **more), name=name, replace=again)

    def update(self, steps: Sequence[Mapping[str, Any]], **more: Any) -> Result[Build]:
        self.profile(steps, **more)
        return update(self.shop, "demo")

    def site(self) -> Path:
        """site-packages of the generation in use."""
        return next((self.shop.home.link("demo").resolve() / "lib").glob("python*")) / "site-packages"

    def installed(self) -> dict[str, str]:
        pairs = (path.name.removesuffix(".dist-info").rsplit("-", 1) for path in self.site().glob("*.dist-info"))
        found = {name.lower().replace("_", "-"): version for name, version in pairs}
        return {name: version for name, version in found.items() if name not in OWN}


def _fields(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}
