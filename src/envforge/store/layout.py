"""Where everything lies under ENVFORGE_HOME.

``envs/NAME`` is a symlink to ``generations/NAME/G``; ``records/NAME/G`` holds what is known of that generation. An
adopted generation lies elsewhere: ``generations/NAME/G`` is a symlink to the path that ``records/NAME/G/adopted`` says.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from envforge.model.errors import EnvforgeError, UsageError

from .atomic import not_writable, sync_folder, write_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_SWITCHING = re.compile(r"\.([A-Za-z0-9][A-Za-z0-9._-]*)\.switching", re.ASCII)
_DISCARDED = re.compile(r"\.[1-9][0-9]{0,8}\.(pruned|repair)", re.ASCII)
_LONGEST = 200
_ADOPTED = "adopted"
_GENERATIONS = "generations"
_MODELS = "models"


def check_name(name: str) -> str:
    """Return ``name`` if it may name an environment; raises UsageError ``invalid-name``."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST:
        return name
    raise UsageError(
        "invalid-name",
        f"`{name}` cannot name an environment",
        hint=f"use letters, digits, `.`, `_`, `-`, beginning with a letter or digit, at most {_LONGEST} of them",
    )


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of all environments. ``cache`` is the engine's, best on the same file system (hard links)."""

    root: Path
    cache: Path

    @property
    def envs(self) -> Path:
        return self.root / "envs"

    @property
    def generations_root(self) -> Path:
        return self.root / _GENERATIONS

    @property
    def records_root(self) -> Path:
        return self.root / "records"

    @property
    def locks_root(self) -> Path:
        return self.root / "locks"

    @property
    def models(self) -> Path:
        """Models of every environment, by hub, name and revision."""
        return self.root / _MODELS

    def link(self, name: str) -> Path:
        """The symlink that is the environment."""
        return self.envs / check_name(name)

    def prefix(self, name: str, generation: int) -> Path:
        """The folder of a generation, whether or not it exists; a symlink where it was adopted."""
        return self.generations_root / check_name(name) / str(generation)

    def record(self, name: str, generation: int) -> Path:
        """The folder of a generation's records, whether or not it exists."""
        return self.records_root / check_name(name) / str(generation)

    def journal(self, name: str, generation: int) -> Path:
        """The file of a generation's journal."""
        return self.record(name, generation) / "journal.jsonl"

    def adopted(self, name: str, generation: int) -> Path | None:
        """Where a generation that envforge did not build really lies, as recorded; None for every other.

        Nothing of such a prefix is envforge's to remove.
        """
        try:
            text = (self.record(name, generation) / _ADOPTED).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return Path(text.removesuffix("\n")) if text.startswith("/") and text.count("\n") == 1 else None

    def adopt(self, name: str, generation: int, place: Path) -> None:
        """Make ``place``, a real path, the prefix of a generation, by a record and a symlink; it itself is not touched.

        Raises EnvforgeError ``home-not-writable`` or ``planted-link``.
        """
        write_text(self.make_record(name, generation) / _ADOPTED, f"{place}\n")
        link = self.prefix(name, generation)
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place)
            sync_folder(link.parent)
        except OSError as error:
            raise not_writable(link, error) from error

    def holds(self, name: str, generation: int) -> bool:
        """Whether the prefix is there: a real folder, or the symlink to exactly the folder that was adopted."""
        prefix = self.prefix(name, generation)
        if not prefix.is_symlink():
            return prefix.is_dir()
        place = self.adopted(name, generation)
        return place is not None and os.path.realpath(prefix) == str(place) and prefix.is_dir()

    def ensure(self) -> None:
        """Create the folders; raises EnvforgeError ``home-not-writable`` naming the first that cannot be written.

        UsageError ``bad-home`` for a path that PATH or a script's first line cannot hold.
        """
        if re.search(r"[:\n\0]", str(self.root)):
            raise UsageError(
                "bad-home",
                f"the home `{self.root}` has a `:` or a line break in its path",
                cause="PATH could not name the environments in it",
                hint="choose another folder with `--home` or ENVFORGE_HOME",
            )
        for folder in (self.root, self.envs, self.generations_root, self.records_root, self.locks_root, self.cache):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(None, "no permission to write there", str(folder))
            except OSError as error:
                raise not_writable(folder, error) from error

    def make_record(self, name: str, generation: int) -> Path:
        """Create the folder of a generation's records and return it; raises as `make_folder` does."""
        return self.make_folder(self.record(name, generation))

    def make_folder(self, folder: Path) -> Path:
        """Create ``folder``, which lies in the home, and return it.

        Raises EnvforgeError ``home-not-writable``, or ``planted-link`` where a symlink would lead what is written away.
        """
        real = Path(os.path.realpath(self.root)) / folder.relative_to(self.root)
        if Path(os.path.realpath(folder)) != real:
            raise planted(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_writable(folder, error) from error
        return folder

    def environments(self) -> tuple[str, ...]:
        """Names that have a link or records, sorted."""
        linked = {entry for entry in _entries(self.envs) if (self.envs / entry).is_symlink()}
        recorded = {entry for entry in _entries(self.records_root) if self.generations(entry)}
        return tuple(sorted(linked | recorded))

    def current(self, name: str) -> int | None:
        """The generation in use; None if there is none, its folder is gone, or the link leads elsewhere."""
        link = self.link(name)
        try:
            target = os.readlink(link)  # noqa: PTH115 - the text of the link, which pathlib would normalise
        except OSError:
            return None
        folder, number = os.path.split(os.path.normpath(os.path.join(self.envs, target)))  # noqa: PTH118
        if not _NUMBER.fullmatch(number):
            return None
        prefix = self.prefix(name, int(number))
        if os.path.realpath(folder) != os.path.realpath(prefix.parent) or Path(folder).name != name:
            return None
        return int(number) if self.holds(name, int(number)) else None

    def generations(self, name: str) -> tuple[int, ...]:
        """The generations that have records, ascending; a symlink is none."""
        folder = self.records_root / check_name(name)
        return tuple(each for each in _numbers(folder) if _is_real(folder / str(each)))

    def prefixes(self, name: str) -> tuple[int, ...]:
        """The generations that have a folder of their own, ascending, with records or without."""
        folder = self.generations_root / check_name(name)
        return () if folder.is_symlink() else _numbers(folder)

    def names(self) -> tuple[str, ...]:
        """Whatever has a link, records, or only a folder of generations or half a switch that was left; sorted."""
        switching = {match[1] for match in map(_SWITCHING.fullmatch, _listed(self.envs)) if match}
        found = {*self.environments(), *_entries(self.generations_root), *switching}
        return tuple(sorted(name for name in found if len(name) <= _LONGEST))

    def switching(self, name: str) -> Path:
        """The link while it is made, before it becomes the environment; no environment's name begins with a dot."""
        return self.envs / f".{check_name(name)}.switching"

    def discarded(self, name: str, generation: int) -> Path:
        """Where a generation's folder is moved to before its files go: half of it is never taken for all of it."""
        return self.generations_root / check_name(name) / f".{generation}.pruned"

    def brought(self, name: str, generation: int) -> Path:
        """Where a repair unpacks what it brings for a generation, beside it."""
        return self.generations_root / check_name(name) / f".{generation}.repair"

    def discards(self, name: str) -> tuple[Path, ...]:
        """What a prune that was killed has left of generations, and a repair of what it had brought for one.

        Whoever takes it away holds the environment's lock.
        """
        folder = self.generations_root / check_name(name)
        return tuple(folder / entry for entry in sorted(_listed(folder)) if _DISCARDED.fullmatch(entry))

    def next_generation(self, name: str) -> int:
        """One more than every number that records, prefixes or anything else in their place ever used."""
        seen = (*self.generations(name), *_numbers(self.generations_root / check_name(name)), self.current(name) or 0)
        return max(seen) + 1

    def switch(self, name: str, generation: int) -> None:
        """Make ``generation`` the environment, in one rename.

        Raises EnvforgeError ``generation-missing``, ``not-a-link`` (something else lies at the link's place) or
        ``home-not-writable``; the environment is then as it was.
        """
        link, prefix = self.link(name), self.prefix(name, generation)
        if not self.holds(name, generation):
            raise EnvforgeError(
                "generation-missing",
                f"generation {generation} of `{name}` is not there",
                cause=f"`{prefix}` is no folder",
                hint=f"see `envforge history {name}` for the generations",
            )
        # The environment's lock is held: whatever lies there was left by a switch that was killed.
        waiting = self.switching(name)
        try:
            waiting.unlink(missing_ok=True)
            waiting.symlink_to(os.path.relpath(prefix, self.envs))
            try:
                waiting.replace(link)
            except IsADirectoryError as error:
                waiting.unlink()
                raise EnvforgeError(
                    "not-a-link",
                    f"`{link}` is a folder where the link of the environment should be",
                    hint="move it away, then try again",
                ) from error
            sync_folder(self.envs)
        except OSError as error:
            raise not_writable(link, error) from error

    def refuse_foreign(self, name: str) -> None:
        """Raise EnvforgeError ``not-a-link`` or ``planted-link`` where something of someone else lies in the way."""
        link, prefixes = self.link(name), self.generations_root / name
        if (link.exists() or link.is_symlink()) and not (link.is_symlink() and self._ours(link, name)):
            raise EnvforgeError(
                "not-a-link",
                f"`{link}` is not the link of an environment that envforge made",
                hint="move it away, then try again",
            )
        if prefixes.is_symlink():
            raise planted(prefixes)

    def _ours(self, link: Path, name: str) -> bool:
        """Whether the link leads to a generation of its own, be that there or gone."""
        target = Path(os.path.normpath(self.envs / link.readlink()))
        return target.parent in {self.generations_root / name, Path(os.path.realpath(self.generations_root)) / name}

    def unlink(self, name: str) -> None:
        """Take the environment's link away, if there is one; raises EnvforgeError ``home-not-writable``."""
        link = self.link(name)
        try:
            if link.is_symlink():
                link.unlink()
                sync_folder(self.envs)
        except OSError as error:
            raise not_writable(link, error) from error


def models_for(prefix: Path) -> Path | None:
    """The models of the home whose ``generations/NAME/G`` is ``prefix``; None where that lies in none."""
    return prefix.parents[2] / _MODELS if prefix.parent.parent.name == _GENERATIONS else None


def planted(path: Path) -> EnvforgeError:
    """The error for a symlink where envforge would write."""
    return EnvforgeError(
        "planted-link",
        f"`{path}` is or lies behind a symlink that leads to `{os.path.realpath(path)}`",
        cause="envforge only writes into real folders under the home",
        hint="remove the symlink, or move the whole home with `--home` or `ENVFORGE_HOME`",
    )


def _entries(folder: Path) -> list[str]:
    return [entry for entry in _listed(folder) if _NAME.fullmatch(entry)]


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def _numbers(folder: Path) -> tuple[int, ...]:
    return tuple(sorted(int(entry) for entry in _entries(folder) if _NUMBER.fullmatch(entry)))


def _is_real(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()
