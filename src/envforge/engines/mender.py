"""Single files of a prefix put right in place: each is as before or as it shall be, and nothing outside is touched."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from envforge.model.errors import EnvforgeError

_ROOMS = frozenset({"site-packages", "bin", "lib", "lib64", "include", "share", "etc"})


class Mender:
    """For the prefix ``root``. ``beside``: a folder for what is under way, best on the same file system; ``away``:
    where what no wheel holds is moved to. Both are made when they are needed.

    Paths are POSIX, relative to the prefix. Every method raises OSError, and EnvforgeError ``bad-path`` for a path that
    would lead out of the prefix.
    """

    def __init__(self, root: Path, *, beside: Path, away: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self._beside = beside
        self._away = away
        self._left: set[Path] = set()
        self._arriving = self._root / ".envforge-repair"
        self._arriving.unlink(missing_ok=True)

    def move_in(self, source: Path, path: str) -> None:
        """Put ``source`` in the place of ``path``, in one rename."""
        place = self._place(path)
        try:
            source.replace(place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # An environment that was adopted may lie on another file system.
            shutil.copy2(source, self._arriving, follow_symlinks=False)
            self._arriving.replace(place)
        self._forget_bytecode(path)

    def link_in(self, target: str, path: str) -> None:
        """Put a symlink to ``target`` in the place of ``path``."""
        self._beside.mkdir(parents=True, exist_ok=True)
        link = self._beside / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        self.move_in(link, path)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; what is gone already is fine."""
        place = self._inside(path)
        if self._behind_link(place):
            return
        if _is_folder(place):
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        self._forget_bytecode(path)
        self._left.add(place.parent)

    def set_aside(self, path: str) -> None:
        """Move a file or folder out of the prefix, to the same place under ``away``; what is gone already is fine."""
        place = self._inside(path)
        if not os.path.lexists(place) or self._behind_link(place):
            return
        target = self._away / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(place, target)
        self._forget_bytecode(path)
        self._left.add(place.parent)

    def tidy(self) -> None:
        """Remove the folders that are empty, but for bytecode, since something in them was removed."""
        for folder in sorted(self._left, key=lambda each: len(each.parts), reverse=True):
            self._prune(folder)
        self._left.clear()

    def _prune(self, folder: Path) -> None:
        while folder != self._root and folder.name not in _ROOMS and not self._behind_link(folder / "x"):
            try:
                left = os.listdir(folder)  # noqa: PTH208 - names, not paths
            except FileNotFoundError:
                left = []
            if set(left) - {"__pycache__"} or (left and not _is_folder(folder / "__pycache__")):
                return
            if left:
                shutil.rmtree(folder / "__pycache__")
            if folder.exists():
                folder.rmdir()
            folder = folder.parent

    def _inside(self, path: str) -> Path:
        pure = PurePosixPath(path)
        if not path or pure.is_absolute() or ".." in pure.parts:
            raise EnvforgeError("bad-path", f"`{path}` leads out of the environment: nothing was done there")
        return self._root / pure

    def _place(self, path: str) -> Path:
        """Where ``path`` can be put: every folder above it is a real one, and no folder takes its place."""
        place = self._inside(path)
        above = self._root
        for part in place.relative_to(self._root).parts[:-1]:
            above /= part
            if os.path.lexists(above) and not _is_folder(above):
                self.set_aside(above.relative_to(self._root).as_posix())
            above.mkdir(exist_ok=True)
        if _is_folder(place):
            self.set_aside(path)
        return place

    def _behind_link(self, place: Path) -> bool:
        """Whether a symlink above leads elsewhere: what lies there is none of this prefix."""
        above = place.parent
        while above != self._root:
            if above.is_symlink():
                return True
            above = above.parent
        return False

    def _forget_bytecode(self, path: str) -> None:
        """Bytecode is believed for its source's size and mtime, which a changed source may have had too."""
        name = PurePosixPath(path)
        folder = (self._root / name).parent / "__pycache__"
        if name.suffix == ".py" and _is_folder(folder):
            for entry in folder.glob(f"{_escaped(name.stem)}.*.pyc"):
                entry.unlink(missing_ok=True)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _escaped(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
