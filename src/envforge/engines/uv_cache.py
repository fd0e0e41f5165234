"""What uv keeps in its cache for which distribution, and having uv take it away.

As of uv 0.13: ``wheels-v*/index/INDEX/NAME/VERSION-TAGS`` is a symlink to the unpacked wheel in ``archive-v*``, and
``VERSION-TAGS.http`` beside it says which file that was; ``sdists-v*`` is laid out likewise;
``simple-v*/index/INDEX/NAME.rkyv`` is the page. uv's own commands do the removing: by name of the distribution, or, of
one wheel, by taking its entry away, after which uv finds that nothing leads to the archive.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import is_normalized_name
from packaging.version import InvalidVersion, Version

from envforge.model.errors import EnvforgeError
from envforge.system import environ, process

from .uv import binary

_LIMIT = 300.0
_BATCH = 500
# The layout of the uv that comes with envforge. Beside any other, single wheels are not told apart.
_LAYOUT = frozenset({"archive-v0", "sdists-v11", "wheels-v8"})
_BESIDE = ("", ".http", ".msgpack", ".rev", ".lock")
_SHA256 = re.compile(rb"Sha256\xd9@([0-9a-f]{64})")
# Where version and tags together are too long, uv cuts the version to 47 characters, and off what it must not end in.
_CUT = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """One wheel that the cache holds unpacked.

    ``name`` is canonical; ``version`` is None where it is not sure. ``hashes``: the sha256 of the wheel, empty where
    uv does not say. ``places``: the symlink to the archive, then what uv notes beside it.
    """

    name: str
    version: Version | None
    hashes: frozenset[str]
    places: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UvCache:
    """``folder`` need not exist."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """Canonical names of the distributions of which it holds anything, sorted."""
        pages = {path.stem for path in self.folder.glob("simple-v*/index/*/*.rkyv")}
        shelves = {path.name for path in self._shelves("*") if path.is_dir()}
        return tuple(sorted(name for name in pages | shelves if is_normalized_name(name)))

    @property
    def familiar(self) -> bool:
        """Whether it is laid out as by the uv that comes with envforge, and by no other."""
        buckets = (path.name for kind in ("archive", "sdists", "wheels") for path in self.folder.glob(f"{kind}-v*"))
        return _LAYOUT.issuperset(buckets)

    def unpacked(self) -> tuple[Unpacked, ...]:
        """Every wheel that it holds unpacked, sorted by place; none where the layout is not `familiar`."""
        if not self.familiar:
            return ()
        links = sorted(path for path in self.folder.glob("wheels-v*/index/*/*/*") if path.is_symlink())
        return tuple(_unpacked(link) for link in links if is_normalized_name(link.parent.name))

    def places(self, names: Sequence[str], wheels: Sequence[Unpacked]) -> dict[str, tuple[Path, ...]]:
        """All that goes with these names and these single wheels of others, archives that nothing else leads to too.

        By name, and by ``name==version``.
        """
        going = set(names)
        found = {
            name: [*self._shelves(name), *self.folder.glob(f"simple-v*/index/*/{name}.rkyv")] for name in sorted(going)
        }
        single: dict[Path, str] = {}  # link -> what it goes under
        for wheel in wheels:
            what = f"{wheel.name}=={wheel.version}"
            found.setdefault(what, []).extend(wheel.places)
            single[wheel.places[0]] = what
        for archive, owned in sorted(self._owners().items()):
            if all(link in single or name in going for link, name in owned.items()):
                found[min(single.get(link, name) for link, name in owned.items())].append(archive)
        return {what: tuple(paths) for what, paths in found.items()}

    def dangling(self) -> tuple[Path, ...]:
        """What nothing leads to: debris of a uv that was killed."""
        owners = self._owners()
        archives = [path for path in self.folder.glob("archive-v*/*") if path not in owners]
        temporary = (
            *self.folder.glob(".tmp*"),
            *self.folder.glob("builds-v*/*"),
            *self.folder.glob("environments-v*/*"),
        )
        return tuple(sorted((*archives, *temporary)))

    def clean(self, names: Sequence[str], wheels: Sequence[Unpacked]) -> None:
        """Remove all that it holds of ``names``, these single ``wheels`` of others, and what nothing leads to.

        Raises EnvforgeError ``cache-not-cleaned``, at once where another uv works with it.
        """
        if not self.folder.is_dir():
            return
        with self._alone():
            for path in (path for wheel in wheels for path in wheel.places):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise self._not_cleaned(f"{path}: {error.strerror}") from error
            for start in range(0, len(names), _BATCH):
                self._uv("clean", *names[start : start + _BATCH])
            self._uv("prune")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock that every uv shares while it uses the cache."""
        with ExitStack() as stack:
            try:
                lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise self._not_cleaned("another uv works with it") from error
            except OSError as error:
                raise self._not_cleaned(f"its lock cannot be had: {error.strerror}") from error
            yield

    def _uv(self, *words: str) -> None:
        # Not from where the user stands, which may be the cache: uv would take that for a project.
        completed = process.run(
            [binary(), "cache", *words, "--force"],  # its lock is held here
            env=environ.hermetic({"UV_CACHE_DIR": str(self.folder), "UV_NO_PROGRESS": "1"}),
            cwd=self.folder.parent,
            timeout=_LIMIT,
        )
        if not completed.ok:
            raise self._not_cleaned(f"{completed.ending()}\n{completed.tail()}")

    def _not_cleaned(self, why: str) -> EnvforgeError:
        return EnvforgeError(
            "cache-not-cleaned",
            f"uv's cache `{self.folder}` is not cleaned",
            cause=why,
            hint="end what else uses that cache, then run the same command again",
        )

    def _shelves(self, name: str) -> Iterator[Path]:
        for bucket in ("wheels", "sdists"):
            yield from self.folder.glob(f"{bucket}-v*/index/*/{name}")

    def _owners(self) -> dict[Path, dict[Path, str]]:
        """Archive -> links that lead to it -> name of the distribution whose link it is, empty where it is none's."""
        found: dict[Path, dict[Path, str]] = defaultdict(dict)
        for bucket in (*self.folder.glob("wheels-v*"), *self.folder.glob("sdists-v*")):
            for path in bucket.rglob("*"):
                if not path.is_symlink():
                    continue
                target = Path(os.path.normpath(path.parent / path.readlink()))
                if target.parent.parent == self.folder and target.parent.name.startswith("archive-v"):
                    kind, _, name, *_ = (*path.relative_to(bucket).parts, "", "")
                    found[target][path] = name if kind == "index" else ""
        return found


def _unpacked(link: Path) -> Unpacked:
    text = link.name.partition("-")[0]
    try:
        version = Version(text) if len(text) < _CUT else None
    except InvalidVersion:
        version = None
    places = (link.with_name(link.name + suffix) for suffix in _BESIDE)
    return Unpacked(
        name=link.parent.name,
        version=version,
        hashes=frozenset(found.decode() for found in _SHA256.findall(_bytes(link.with_name(f"{link.name}.http")))),
        places=tuple(path for path in places if path.is_symlink() or path.is_file()),
    )


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
