"""The models of a profile in a bundle: taken from this home, put into another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from envforge.model.bundle import Member, Stored
from envforge.model.errors import EnvforgeError
from envforge.model.models import Kept
from envforge.model.profile import Hub, Profile
from envforge.model.progress import Note, Working
from envforge.store import models as store
from envforge.store.bundles import manifest as manifests
from envforge.store.bundles.names import MODELS
from envforge.store.bundles.reading import Bundle
from envforge.store.bundles.writing import InMemory, OnDisk
from envforge.store.locking import claim
from envforge.store.models import Place

from .shop import Shop

_CHUNK = 1 << 20


def elsewhere(profile: Profile) -> Iterator[str]:
    """What a bundle cannot carry of the profile's models, in sentences."""
    for model in profile.models:
        if model.hub is Hub.PATH:
            yield f"the model `{model.name}`, which lies at a path of this host (`{model.path}`)"


def carried(shop: Shop, name: str, profile: Profile) -> list[tuple[Member, Stored]]:
    """Every file of the models of ``profile`` that come from a hub. Raises EnvforgeError ``model-missing``."""
    found: list[tuple[Member, Stored]] = []
    missing = []
    for model in profile.models:
        if model.hub is Hub.PATH:
            continue
        place = store.place(shop.home, model)
        kept = place.kept()
        if kept is None:
            missing.append(f"`{model.name}` ({model.revision})")
            continue
        called = f"{MODELS}{place.what}"
        record = InMemory(place.record.read_bytes())
        found.append((record.member(f"{called}/{_RECORD}"), record))
        for path, file in sorted(kept.files.items()):
            stored = OnDisk(place.folder / path)
            found.append((Member(name=f"{called}/{_FILES}{path}", sha256=file.sha256, size=file.size), stored))
    if missing:
        raise EnvforgeError(
            "model-missing",
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in this home, or not whole",
            hint=f"`envforge models {name} --fetch` fetches what is missing",
        )
    return found


_RECORD = "record.json"
_FILES = "files/"


def put(shop: Shop, bundle: Bundle, profile: Profile) -> None:
    """Put the models that ``bundle``, which was verified, holds of ``profile`` into the home, where they are not there.

    Raises EnvforgeError ``locked``, ``home-not-writable``; UsageError ``not-a-bundle``.
    """
    for model in profile.models:
        if model.hub is Hub.PATH:
            continue
        place = store.place(shop.home, model)
        called = f"{MODELS}{place.what}/"
        record = bundle.pieces.get(f"{called}{_RECORD}")
        if record is None or place.kept() is not None:
            continue
        with claim(shop.home.make_folder(shop.home.models)) as alone:
            if not alone:
                raise EnvforgeError(
                    "locked", "another envforge fetches models into this home", hint="wait until it has ended"
                )
            shop.tell(Working(what=f"unpacking the model {model.name}"))
            with record.open() as stream:
                kept = _kept(bundle, stream.read())
            _unpack(shop, bundle, place, kept, called)
            shop.tell(Working(what=None))
            shop.tell(Note(text=f"model {place.what} from {bundle.path.name}"))


def _kept(bundle: Bundle, text: bytes) -> Kept:
    try:
        return store.read(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise manifests.invalid(bundle.path, f"what it says of a model cannot be read ({error})") from error


def _unpack(shop: Shop, bundle: Bundle, place: Place, kept: Kept, called: str) -> None:
    folder = place.open(shop.home)
    members = {member.name: member for member in bundle.manifest.members}
    for path, file in kept.files.items():
        name = f"{called}{_FILES}{path}"
        pure = PurePosixPath(path)
        if name not in members or members[name].sha256 != file.sha256 or pure.is_absolute() or ".." in pure.parts:
            raise manifests.invalid(bundle.path, f"its record of a model names `{path}`, which is not in it as that")
        target = folder / path
        shop.home.make_folder(target.parent)
        with bundle.pieces[name].open() as source, target.open("wb") as copy:
            while chunk := source.read(_CHUNK):
                copy.write(chunk)
    place.close(kept)
