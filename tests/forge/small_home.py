"""A home with one small environment in it: a real venv, and the records that a build leaves."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from envforge.forge.shop import Shop
from envforge.model import wire
from envforge.model.finding import Finding, Severity
from envforge.model.plan import Because, Change
from envforge.model.profile import Profile
from envforge.model.progress import Progress
from envforge.model.settings import Settings
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution
from envforge.probe import prefix
from envforge.profiles import loader
from envforge.store import profiles, snapshots
from envforge.store.journal import Journal
from envforge.store.layout import Home

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PROFILE = f"""\
schema: 1
name: small
summary: a small one
python: "{PYTHON}"
indexes: [{{name: pypi}}]
environment: {{FROM_PROFILE: "yes", PATH_LIKE: "a:b"}}
steps:
  - {{name: base, install: ["six<2"]}}
  - {{name: pin, pin: ["six<2"]}}
guards:
  - {{hold: "six<2", because: later ones lack a name}}
commands: {{hello: [python, -c, "print('hello')"], broken: [no-such-program]}}
"""
OPENED = Finding(
    id="hold-violated", severity=Severity.ERROR, subject="six", message="`six` 2.0 violates hold six<2", step="base"
)


def shop(root: Path, told: list[Progress] | None = None) -> Shop:
    """A shop over the home ``root``; what is told goes to ``told``."""
    settings = Settings(home=root, cache=root / "cache")
    home = Home(root, root / "cache")
    home.ensure()
    return Shop(settings=settings, home=home, tell=(told if told is not None else []).append)


def dist(name: str, version: str) -> Distribution:
    return Distribution(name=name, version=version, index="pypi", size=10)


def put(site: Path, name: str, version: str, text: str = "x = 1\n") -> None:
    """A distribution of one module, as an installer leaves it."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(text, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", encoding="utf-8")
    (info / "INSTALLER").write_text("uv\n", encoding="utf-8")
    rows = [f"{name}.py,,", *(f"{info.name}/{file},," for file in ("METADATA", "WHEEL", "INSTALLER", "RECORD"))]
    (info / "RECORD").write_text("\n".join(rows) + "\n", encoding="utf-8")


def site(shop: Shop, name: str = "small", generation: int = 1) -> Path:
    return shop.home.prefix(name, generation) / "lib" / f"python{PYTHON}" / "site-packages"


def environment(shop: Shop, name: str = "small", *, text: str = PROFILE, switch: bool = True) -> Profile:
    """Generation 1 of ``name``, built: a step that opens a hold and one that heals it, each with a snapshot."""
    home = shop.home
    place = home.prefix(name, 1)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    put(site(shop, name), "six", "1.0")
    profile = loader.loads(text, "/profiles/small.yaml")
    profiles.write(home, name, 1, profile)
    snapshot = Snapshot(
        environment=name,
        generation=1,
        step=1,
        step_name="base",
        made="2026-11-30T09:00:00Z",
        by="tester",
        machine="box",
        driver=None,
        python=PYTHON,
        engine="uv",
        state={"six": dist("six", "2.0")},
    )
    snapshots.write(home, snapshot, "lock-version = '1.0'\n")
    seen = prefix.look(place).state
    now = {key: replace(value, index="pypi", size=10, requested=True) for key, value in seen.items()}
    snapshots.write(home, replace(snapshot, step=2, step_name="pin", state=now), "lock-version = '1.0'\n")
    journal = Journal(home.journal(name, 1))
    journal.append("started", profile="small")
    added = Change(name="six", before=None, after=dist("six", "2.0"), because=Because(requirement="six"))
    back = Change(name="six", before=dist("six", "2.0"), after=dist("six", "1.0"), because=Because(requirement="six<2"))
    for position, (step, change) in enumerate((("base", added), ("pin", back)), start=1):
        journal.append("step-started", step=position, name=step)
        journal.append(
            "step-finished",
            step=position,
            name=step,
            action="install" if step == "base" else "pin",
            changes=[wire.change(change)],
            opens=[wire.finding(OPENED)] if step == "base" else [],
            heals=wire.heals((OPENED,)) if step == "pin" else [],
            seconds=1.5,
            differs=[],
        )
    journal.append("finished")
    if switch:
        home.switch(name, 1)
        journal.append("switched")
    return profile
