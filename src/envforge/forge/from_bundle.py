"""`create --bundle`: an environment from one file, which brings all that it takes; no network is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envforge.model.bundle import HOST, Manifest
from envforge.model.errors import EnvforgeError
from envforge.model.export import built, installable
from envforge.model.lock import LockFile
from envforge.model.progress import Note, Working
from envforge.model.result import Build, Result
from envforge.probe import pythons
from envforge.profiles import loader
from envforge.store import lockfile
from envforge.store.bundles import manifest as manifests
from envforge.store.bundles.names import LOCK
from envforge.store.bundles.reading import Bundle, opened
from envforge.store.scratch import scratch
from envforge.system import environ

from . import bundled_models
from .create import claimed
from .from_lock import insist
from .restoring import Lock, restore
from .shop import Shop


def create_bundled(
    shop: Shop, file: Path, *, name: str | None = None, replace_it: bool = False, any_machine: bool = False
) -> Result[Build]:
    """Build what the bundle ``file`` holds, without a network.

    Raises UsageError ``unreadable-file``, ``not-a-bundle``, ``newer-record``, EnvforgeError ``bundle-unfit``,
    ``bundle-damaged``, ``bundle-part-missing``, ``python-not-found``, and as `restore` does.
    """
    with opened(file) as bundle:
        _insist_on_host(file, bundle.manifest)
        offline = replace(shop, settings=replace(shop.settings, offline=True))
        room = shop.settings.cache / "scratch"
        called = name or bundle.manifest.environment
        with claimed(offline, called, replace=replace_it) as claim, scratch(room) as folder:
            shop.tell(Note(text=f"bundle {file}"))
            _verify(shop, bundle)
            held = _held(shop, bundle, folder)
            bundled_models.put(shop, bundle, held.profile)
            return restore(offline, claim, held, command="create", any_machine=any_machine)


def _held(shop: Shop, bundle: Bundle, folder: Path) -> Lock:
    """The lock of the bundle; wheels that no index has go to ``folder``."""
    file = bundle.path
    found = lockfile.load(bundle.lock(), Path(f"{file} ({LOCK})"))
    _insist_on_files(bundle, found)
    before = loader.loads(found.text, f"{file} (profile)")
    # What it was built from is a lock, wherever that lay: `update` and `show` know what that means.
    chosen = replace(before, source=str(file.resolve() / LOCK))
    insist(shop, file, found, chosen, before)
    _unpack_built(bundle, found, folder)
    return Lock(
        called=f"`{file.name}`",
        generation=None,
        profile=chosen,
        states=tuple(step.state for step in found.steps),
        python=found.python,
        substitutes=found.substitutes,
        wheels=folder,
        shelf=bundle.files,
        base=found.base or None,
    )


def _insist_on_host(file: Path, manifest: Manifest) -> None:
    """Raises EnvforgeError ``bundle-unfit`` or ``python-not-found`` before anything is read that takes time."""
    needs = manifest.needs
    here, glibc = environ.architecture(), environ.glibc()
    if needs.architecture not in {None, here}:
        raise EnvforgeError("bundle-unfit", f"`{file}` is for {needs.architecture}, and this host is {here}")
    if needs.glibc is not None and (glibc is None or _numbers(glibc) < _numbers(needs.glibc)):
        raise EnvforgeError(
            "bundle-unfit",
            f"`{file}` needs glibc {needs.glibc} or newer, and this host has {glibc or 'another C library'}",
            cause="what is compiled in it was built against that",
            hint="use a newer system, or a container of one",
        )
    if manifest.python_from == HOST:
        pythons.find(".".join(manifest.python.split(".")[:2]))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _verify(shop: Shop, bundle: Bundle) -> None:
    what, total = f"checking {bundle.path.name}", sum(member.size for member in bundle.manifest.members)
    bundle.verify(lambda done: shop.tell(Working(what=what, done=done, total=total)))
    shop.tell(Working(what=None))


def _insist_on_files(bundle: Bundle, found: LockFile) -> None:
    missing = sorted(str(item.file) for sha256, item in found.files.items() if sha256 not in bundle.files)
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise manifests.invalid(bundle.path, f"its lock names what is not in it: {names}")


def _unpack_built(bundle: Bundle, found: LockFile, folder: Path) -> None:
    """Lay wheels that no index has into ``folder``, from where envforge's own store takes them."""
    for item in (item for step in found.steps for item in step.state.values() if installable(item) and built(item)):
        target = folder / str(item.file)
        with bundle.files[str(item.sha256)].open() as source, target.open("wb") as copy:
            while chunk := source.read(1 << 20):
                copy.write(chunk)
