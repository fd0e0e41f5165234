"""What uv keeps in its cache for which distribution, and having uv take it away.

As of uv 0.13: ``wheels-v*/index/INDEX/NAME/VERSION-TAGS`` is a symlink to the unpacked wheel in ``archive-v*``;
``sdists-v*`` is laid out likewise; ``simple-v*/index/INDEX/NAME.rkyv`` is the page. The layout is only read: uv's own
commands do the removing, by name of the distribution, so what it keeps of one goes all at once.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import is_normalized_name

from envforge.model.errors import EnvforgeError
from envforge.system import environ, process

from .uv import binary

# uv waits for others of its kind, as long as they work.
_LIMIT = 300.0
_BATCH = 500


@dataclass(frozen=True, slots=True)
class UvCache:
    """``folder`` need not exist."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """Canonical names of the distributions of which it holds anything, sorted."""
        pages = {path.stem for path in self.folder.glob("simple-v*/index/*/*.rkyv")}
        shelves = {path.name for path in self._shelves("*") if path.is_dir()}
        return tuple(sorted(name for name in pages | shelves if is_normalized_name(name)))

    def places(self, names: Sequence[str]) -> dict[str, tuple[Path, ...]]:
        """Name -> all that goes when uv is told to clean it, archives that nothing else leads to with it."""
        owners = self._owners()
        going = set(names)
        found = {
            name: [*self._shelves(name), *self.folder.glob(f"simple-v*/index/*/{name}.rkyv")] for name in sorted(going)
        }
        for archive, owned in sorted(owners.items()):
            if owned <= going:
                found[min(owned)].append(archive)
        return {name: tuple(paths) for name, paths in found.items()}

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

    def clean(self, names: Sequence[str]) -> None:
        """Have uv remove all that it holds of ``names``, and what nothing leads to. Raises EnvforgeError."""
        if not self.folder.is_dir():
            return
        for start in range(0, len(names), _BATCH):
            self._uv("clean", *names[start : start + _BATCH])
        self._uv("prune")

    def _uv(self, *words: str) -> None:
        # Not from where the user stands, which may be the cache: uv would take that for a project.
        completed = process.run(
            [binary(), "cache", *words],
            env=environ.hermetic({"UV_CACHE_DIR": str(self.folder), "UV_NO_PROGRESS": "1"}),
            cwd=self.folder.parent,
            timeout=_LIMIT,
        )
        if not completed.ok:
            raise EnvforgeError(
                "cache-not-cleaned",
                f"uv did not clean its cache `{self.folder}`: {completed.ending()}",
                cause=completed.tail(),
                hint="end what else uses that cache, then run the same command again",
            )

    def _shelves(self, name: str) -> Iterator[Path]:
        for bucket in ("wheels", "sdists"):
            yield from self.folder.glob(f"{bucket}-v*/index/*/{name}")

    def _owners(self) -> dict[Path, set[str]]:
        """Archive -> names of the distributions whose entries lead to it, empty where that is none's."""
        found: dict[Path, set[str]] = defaultdict(set)
        for bucket in (*self.folder.glob("wheels-v*"), *self.folder.glob("sdists-v*")):
            for path in bucket.rglob("*"):
                if not path.is_symlink():
                    continue
                target = Path(os.path.normpath(path.parent / path.readlink()))
                if target.parent.parent == self.folder and target.parent.name.startswith("archive-v"):
                    kind, _, name, *_ = (*path.relative_to(bucket).parts, "", "")
                    found[target].add(name if kind == "index" else "")
        return found
