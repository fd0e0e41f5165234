"""What the RECORDs of distributions say of their files: the second witness, beside or for want of a snapshot."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from envforge.model.state import Observation
from envforge.probe import hashing
from envforge.probe import prefix as prefixes
from envforge.rules.against_record import Disagreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """``digests``: sha256 (hex) of every file whose bytes are others than its RECORD says."""

    disagreement: Disagreement
    digests: Mapping[str, str]


def hear(prefix: Path, names: Collection[str]) -> Testimony:
    """Hash all files of the distributions ``names`` and hear their RECORDs."""
    wrong = prefixes.damaged(prefix, names)
    paths = [path for found in wrong.values() for path in found]
    missing = {path for path in paths if _is_gone(prefix / path)}
    looked = hashing.digests(prefix, (path for path in paths if path not in missing))
    digests = {path: sha256 for path, sha256 in looked.items() if sha256 is not None}
    return Testimony(
        disagreement=Disagreement(
            missing=_only(wrong, missing),
            modified=_only(wrong, digests.keys()),
            unreadable=_only(wrong, looked.keys() - digests.keys()),
        ),
        digests=digests,
    )


def veiled(prefix: Path, observation: Observation, testimony: Testimony) -> set[str]:
    """Files and folders that are there and cannot be read, relative to ``prefix``."""
    found = {path for of in testimony.disagreement.unreadable.values() for path in of}
    place = os.path.realpath(prefix)
    for path in observation.unreadable:
        real = os.path.normpath(f"{place}/{path}")
        # Rows of a RECORD that leave the environment, sockets and pipes stand there too: nobody recorded those.
        if f"{real}/".startswith(f"{place}/") and (os.path.isdir(real) or os.path.isfile(real)):  # noqa: PTH112, PTH113
            found.add(path)
    return found


def _is_gone(path: Path) -> bool:
    """Whether no file is there, but nothing or what took its place; of a folder that cannot be entered nobody knows."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def _only(wrong: Mapping[str, tuple[str, ...]], paths: Collection[str]) -> dict[str, tuple[str, ...]]:
    kept = {name: tuple(path for path in found if path in paths) for name, found in wrong.items()}
    return {name: found for name, found in kept.items() if found}
