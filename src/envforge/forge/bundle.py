"""`bundle`: an environment as one file that builds it on a host without a network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import parse_wheel_filename

from envforge.engines.conda import architecture
from envforge.model.bundle import BROUGHT, HOST, Manifest, Member, Needs, Stored
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import built
from envforge.model.lock import LockFile
from envforge.model.profile import Backend, Hub, Profile
from envforge.model.progress import Note, Working
from envforge.model.repodata import depends, said, subdir
from envforge.model.result import Result
from envforge.model.state import is_package
from envforge.model.views import BundleView
from envforge.probe import itself
from envforge.probe.needs import both, needs, needs_of_packages, strictest
from envforge.profiles import loader, lookup
from envforge.store import lockfile
from envforge.store.bundles.names import LOCK, PROFILE, file_name
from envforge.store.bundles.parts import MOST, Sink
from envforge.store.bundles.start import PROGRAM
from envforge.store.bundles.workshop import put_in_place, workshop
from envforge.store.bundles.writing import InMemory, OnDisk, pack, write
from envforge.system import environ

from . import bundled_models
from .bench import bench
from .fetching import Fetching
from .ground import ground
from .lock import insist_on_hashes, recorded, unknown
from .shop import Shop

_LEAST = 1 << 20  # its first part must hold the script, at least
_SIZE = re.compile(r"([1-9][0-9]*)([KMGT]?)", re.ASCII)


def part_size(text: str) -> int:
    """Bytes of ``2G`` or ``500M``, in powers of 1024. Raises UsageError ``usage``."""
    match = _SIZE.fullmatch(text.upper())
    size = int(match[1]) << (10 * " KMGT".index(match[2] or " ")) if match else 0
    if size < _LEAST:
        raise UsageError("usage", f"`{text}` is no size of at least 1M", hint="write `2G` or `500M`")
    return size


def bundle(
    shop: Shop, name: str, *, output: str | None = None, split: int | None = None, models: bool = False
) -> Result[BundleView]:
    """Write the generation in use of ``name`` to ``output`` (``NAME.tar`` where None), in parts of ``split`` bytes.

    ``models``: with those that its profile names. Raises UsageError, EnvforgeError ``not-restorable``,
    ``bundle-incomplete`` naming every file that cannot be had, ``model-missing``, ``not-packable``, ``not-writable``,
    ``disk-full``, ``locked``.
    """
    snapshot, held, indexes = recorded(shop, name)
    insist_on_hashes(held)
    profile = loader.loads(held.text, name)
    lost = (*unknown(held), *(bundled_models.elsewhere(profile) if models else ()))
    for each in lost:
        shop.tell(Note(text=each, level="warning"))
    weights = bundled_models.carried(shop, name, profile) if models else []
    file = Path(output or f"{name}.tar")
    running = itself.look({kind: lookup.shipped(kind) for kind in ("profiles", "recipes")})
    with workshop(file) as folder:
        found = _files(shop, held, profile, folder, file)
        shop.tell(Working(what="packing envforge itself"))
        extra = {
            PROFILE: InMemory(held.text.encode()),
            LOCK: InMemory(lockfile.dump(held, indexes=indexes).encode()),
            PROGRAM: _program(running),
        }
        manifest = Manifest(
            environment=name,
            python=held.python,
            python_from=BROUGHT if profile.backend is Backend.CONDA else HOST,
            needs=_needs(held),
            program=running.program,
            members=(
                *(each.member(called) for called, each in extra.items()),
                *(each.member for each in found),
                *(member for member, _ in weights),
            ),
        )
        with Sink(folder, split) as sink:
            contents = [*extra.values(), *(each.stored for each in found), *(stored for _, stored in weights)]
            _write(shop, sink, manifest, contents, file)
        made = put_in_place(sink.paths, file, split=split is not None)
    return Result(
        command="bundle",
        data=BundleView(
            environment=name,
            snapshot=snapshot,
            written=tuple(map(str, made)),
            bytes=sink.size,
            sha256=sink.sha256(),
            wheels=sum(not each.package for each in found),
            built=sum(each.built for each in found),
            packages=sum(each.package for each in found),
            models=len({model.name for model in profile.models if model.hub is not Hub.PATH}) if models else 0,
            python=held.python,
            python_from=manifest.python_from,
            architecture=environ.architecture(),
            glibc=strictest(manifest.needs, running.program.needs),
            program_python=running.program.python,
            lost=lost,
        ),
    )


# -- the files ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """``built``: no index has it; ``package``: it is a conda package."""

    member: Member
    stored: Stored
    built: bool
    package: bool


def _files(shop: Shop, held: LockFile, profile: Profile, folder: Path, file: Path) -> list[_File]:
    """All files of the lock, sorted by name; those that had to be fetched lie in ``folder``."""
    wanted = held.files
    settings = replace(shop.settings, substitutes=held.substitutes)
    there = replace(shop, settings=settings)
    with ExitStack() as stack:
        chosen = replace(profile, python=held.python)
        under = stack.enter_context(ground(there, chosen, base=held.base, lay_out=False))
        work = stack.enter_context(bench(there, profile, under))
        places = Fetching(shop, work, folder, wanted).all(file)
    found = []
    for sha256, item in wanted.items():
        stored = OnDisk(places[sha256])
        member = Member(name=file_name(sha256, str(item.file)), sha256=sha256, size=stored.size)
        package = is_package(item.name)
        found.append(_File(member=member, stored=stored, built=not package and built(item), package=package))
    return sorted(found, key=lambda each: (each.member.name.rpartition("/")[2], each.member.sha256))


# -- the bundle --------------------------------------------------------------------------------------------------------


def _program(running: itself.Itself) -> InMemory:
    name, text = running.metadata
    files: dict[str, Stored] = {each: OnDisk(path) for each, path in running.files}
    files[name] = InMemory(text.encode())
    return pack(sorted(files.items()))


def _needs(held: LockFile) -> Needs:
    wheels, packages = [], []
    for item in held.files.values():
        if is_package(item.name):
            required = (*depends(item), *said(item).get("constrains", ()))
            packages.append((architecture(subdir(item)), required))
        else:
            wheels.append([tag.platform for tag in parse_wheel_filename(str(item.file))[3]])
    return both(needs(wheels, glibc=environ.glibc()), needs_of_packages(packages))


def _write(shop: Shop, sink: Sink, manifest: Manifest, contents: Sequence[Stored], file: Path) -> None:
    total = sum(member.size for member in manifest.members)
    free = shutil.disk_usage(file.parent).free
    if free < total:
        raise EnvforgeError(
            "disk-full",
            f"the bundle takes {total / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free where `{file}` is to lie",
            hint="free some space (`df -h`), then run the same command again: what was fetched is kept",
        )
    if sink.most is not None and total > MOST * sink.most:
        raise UsageError("usage", f"more than {MOST} parts would be needed", hint="choose larger ones with `--split`")
    write(
        sink, manifest, contents, lambda done: shop.tell(Working(what=f"writing {file.name}", done=done, total=total))
    )
    shop.tell(Working(what=None))
