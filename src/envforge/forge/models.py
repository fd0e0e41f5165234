"""`models`: where the models lie that a profile names, whether they are whole, and fetching those that are not."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.engines import hubs
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding
from envforge.model.models import Condition, HubFile, Kept, KeptFile, Listing
from envforge.model.profile import Hub, Model, Profile
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.views import ModelEntry, ModelsView
from envforge.probe import hashing
from envforge.rules.models import changed_model
from envforge.store import models as store
from envforge.store.atomic import write_text
from envforge.store.locking import claim
from envforge.store.models import Place
from envforge.store.scratch import scratch
from envforge.system import clock, environ, http

from . import inside
from .listing import Freed
from .path import current
from .profiles import recorded
from .shop import Shop
from .watching import Watched


def models(shop: Shop, name: str, *, fetch: bool = False, check: bool = False) -> Result[ModelsView]:
    """What the profile of the generation in use names; ``check``: every file is hashed; ``fetch``: what is not there
    whole is fetched, by the hub's library in the environment.

    Raises UsageError ``no-such-environment``, EnvforgeError ``no-generation``, ``locked``, ``not-cached``,
    ``disk-full``, ``hash-mismatch``, or what `engines.hubs` says of a hub.
    """
    generation, _ = current(shop.home, name)
    profile = recorded(shop.home, name, generation)
    looked = [_look(shop, name, model, check=check) for model in profile.models]
    if fetch:
        looked = _fetched(shop, name, shop.home.prefix(name, generation), profile, looked)
    return Result(
        command="models",
        data=ModelsView(
            environment=name,
            generation=generation,
            folder=str(shop.home.models),
            models=tuple(each.entry() for each in looked),
        ),
        findings=tuple(finding for each in looked for finding in each.findings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """``changed``: paths that are gone or not as fetched. ``place`` None for a model that lies where its path says."""

    model: Model
    path: Path
    condition: Condition
    bytes: int
    place: Place | None = None
    commit: str | None = None
    changed: tuple[str, ...] = ()
    fetched: bool = False
    findings: tuple[Finding, ...] = ()

    def entry(self) -> ModelEntry:
        return ModelEntry(
            name=self.model.name,
            hub=self.model.hub.value,
            revision=self.model.revision,
            commit=self.commit,
            path=str(self.path),
            condition=self.condition.value,
            bytes=self.bytes,
            fetched=self.fetched,
        )


def remind(shop: Shop, name: str, profile: Profile) -> None:
    """Say which models are not here that a generation's profile names: no build fetches one."""
    looked = [_look(shop, name, model, check=False) for model in profile.models]
    missing = [each.model.name for each in looked if each.condition is not Condition.WHOLE]
    if missing:
        names = ", ".join(f"`{each}`" for each in missing)
        shop.tell(Note(text=f"not here yet: the models {names}; `envforge models {name} --fetch` fetches them"))


def _look(shop: Shop, name: str, model: Model, *, check: bool) -> _Looked:
    if model.path is not None:
        path = Path(model.path).expanduser()
        there = Condition.WHOLE if path.exists() else Condition.ABSENT
        return _Looked(model=model, path=path, condition=there, bytes=Freed().add(path))
    place = store.place(shop.home, model)
    kept = place.kept()
    if kept is None:
        size = Freed().add(place.part) + Freed().add(place.folder)
        there = Condition.PARTIAL if size else Condition.ABSENT
        return _Looked(model=model, path=place.folder, condition=there, bytes=size, place=place)
    if check:
        shop.tell(Working(what=f"hashing {model.name}"))
        found = hashing.digests(place.folder, kept.files)
        shop.tell(Working(what=None))
        changed = tuple(path for path, file in kept.files.items() if found[path] != file.sha256)
        findings = tuple(changed_model(model.name, kept, found, f"`envforge models {name} --check --fetch`"))
    else:
        changed = tuple(path for path, file in kept.files.items() if _size(place.folder / path) != file.size)
        findings = ()
    return _Looked(
        model=model,
        path=place.folder,
        condition=Condition.DAMAGED if changed else Condition.WHOLE,
        bytes=Freed().add(place.folder),
        place=place,
        commit=kept.commit,
        changed=changed,
        findings=findings,
    )


def _size(path: Path) -> int | None:
    try:
        return path.lstat().st_size
    except OSError:
        return None


def _fetched(shop: Shop, name: str, prefix: Path, profile: Profile, looked: list[_Looked]) -> list[_Looked]:
    """All of them as they are once those are fetched that are not there whole."""
    wanting = [each for each in looked if each.condition is not Condition.WHOLE]
    if not wanting:
        return looked
    for each in wanting:
        _refuse(shop, each)
    shop.home.make_folder(shop.home.models)
    with claim(shop.home.models) as alone:
        if not alone:
            raise EnvforgeError(
                "locked",
                "models are being fetched or pruned",
                cause=f"another envforge works in `{shop.home.models}`, or its file system has no locks",
                hint="wait until it has finished",
            )
        # Another may have fetched it while this one looked.
        return [_whole(shop, name, prefix, profile, each) if each in wanting else each for each in looked]


def _refuse(shop: Shop, wanting: _Looked) -> None:
    model = wanting.model
    if model.hub is Hub.PATH:
        raise EnvforgeError(
            "model-not-found",
            f"the model `{model.name}` is not at `{wanting.path}`, where the profile says that it lies",
            hint="put it there, or correct its `path` in the profile, then `envforge update`",
        )
    if shop.settings.offline:
        raise EnvforgeError(
            "not-cached",
            f"offline, the model `{model.name}` cannot be fetched",
            hint="run it once without `--offline`",
        )


def _whole(shop: Shop, name: str, prefix: Path, profile: Profile, wanting: _Looked) -> _Looked:
    model = wanting.model
    before = _look(shop, name, model, check=False)
    if before.condition is not Condition.WHOLE or wanting.changed:
        with scratch(shop.home.models / ".scratch") as folder:
            library = hubs.Library(
                python=prefix / "bin" / "python",
                variables=_variables(shop, prefix, profile, model.hub, folder),
                scratch=folder,
            )
            _from_any(shop, library, wanting)
    return replace(_look(shop, name, model, check=False), fetched=True)


def _variables(shop: Shop, prefix: Path, profile: Profile, hub: Hub, folder: Path) -> Mapping[str, str]:
    """Of the environment, with the network: Hugging Face by the host's proxy, ModelScope only by one of envforge's own.

    In the places where ModelScope is used it is reached directly, and often not through the proxy.
    """
    roots = folder / "certificates.pem"
    write_text(roots, http.certificates())
    extra = {"SSL_CERT_FILE": str(roots), "REQUESTS_CA_BUNDLE": str(roots), "CURL_CA_BUNDLE": str(roots)}
    given = http.proxies(shop.settings.proxy)
    if hub is Hub.HUGGINGFACE or shop.settings.proxy is not None:
        network = {"http_proxy": given.http, "https_proxy": given.https, "no_proxy": ",".join(given.exempt)}
        extra |= {name: value for name, value in network.items() if value}
    token = environ.variables().get(hubs.TOKENS[hub])
    if token:
        environ.keep_secret(token)
        extra[hubs.TOKENS[hub]] = token
    return inside.variables(prefix, profile, shop.tell, extra)


def _from_any(shop: Shop, library: hubs.Library, wanting: _Looked) -> None:
    """From the hub itself, or the first of its mirrors that serves."""
    sources = shop.settings.mirrors.get(wanting.model.hub.value, (hubs.ORIGIN,))
    for number, source in enumerate(sources):
        try:
            _fetch(shop, library, source, wanting)
        except EnvforgeError as error:
            if error.code not in hubs.ELSEWHERE or number == len(sources) - 1:
                raise
            shop.tell(Note(text=f"{error.message}; the next mirror is asked", level="warning"))
        else:
            return


def _fetch(shop: Shop, library: hubs.Library, source: str, wanting: _Looked) -> None:
    model, place = wanting.model, wanting.place
    assert place is not None  # noqa: S101 - one that lies elsewhere was refused
    shop.tell(Working(what=f"asking {model.hub.value} for {model.name}"))
    listing = library.listing(model, source)
    part = place.open(shop.home, without=wanting.changed)
    missing = sum(file.size for file in listing.files if _size(part / file.path) != file.size)
    free = shutil.disk_usage(part).free
    begun = sum(path.lstat().st_size for path in part.rglob("*.incomplete"))
    if missing - begun > free:
        raise hubs.disk_full(model, f"{missing - begun:,} bytes are still to fetch, {free:,} are free")
    with Watched(shop, f"fetching {model.name} from {model.hub.value}", missing) as watch:
        library.fetch(model, source, part, listing.commit, watch)
    shop.tell(Working(what=f"checking {model.name}"))
    place.close(_proved(model, part, listing))
    shop.tell(Working(what=None))
    shop.tell(Note(text=f"fetched {model.name} from {model.hub.value}: {len(listing.files)} files"))


def _proved(model: Model, part: Path, listing: Listing) -> Kept:
    """What lies there, once every file is proved to be what the hub lists; a file that is not goes."""
    found = hashing.digests(part, [file.path for file in listing.files])
    wrong = [file.path for file in listing.files if not _is(part, file, found[file.path])]
    if wrong:
        for path in wrong:
            (part / path).unlink(missing_ok=True)
        raise EnvforgeError(
            "hash-mismatch",
            f"{len(wrong)} files of the model `{model.name}` are not what {model.hub.value} lists",
            cause=", ".join(wrong),
            hint="they were removed; run the same command again",
        )
    files = {file.path: KeptFile(size=file.size, sha256=found[file.path] or "") for file in listing.files}
    return Kept(commit=listing.commit, fetched=clock.now(), files=files)


def _is(part: Path, file: HubFile, sha256: str | None) -> bool:
    if sha256 is None or _size(part / file.path) != file.size:
        return False
    if file.sha256 is not None:
        return sha256 == file.sha256
    return file.git is None or hashing.of_blob(part / file.path) == file.git
