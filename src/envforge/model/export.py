"""What an export is made of, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .profile import Backend, Profile
from .state import Distribution, State, is_package

FORMATS = (
    "pylock", "requirements", "script", "dockerfile", "environment-yml", "systemd", "kernelspec", "conda-explicit",
    "conda-lock",
)  # fmt: skip
FOR_CONDA = frozenset({"conda-explicit", "conda-lock"})
INTO_A_FOLDER = frozenset({"systemd", "kernelspec"})
"""The formats of several files, or of one whose name is given."""
FOR_A_COMMAND = frozenset({"systemd"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An environment as it was recorded.

    ``states[k]``: what was installed after the first k steps of ``profile``, 0 being before any. ``python``: version in
    full. ``indexes``: name -> URL without credentials, None = whatever the installer's default index is. ``private``:
    names of those that credentials are kept for. ``channels``: name -> a name that conda knows or URL, with the backend
    conda. ``kept``: sha256 of a wheel that was built here -> where it lies. ``contested``: how many paths more than one
    distribution owns; ``activated``: whether packages bring scripts for `conda activate`. ``program``: what starts
    envforge for this home, an absolute path first. ``command``: a name under the profile's commands.
    """

    environment: str
    snapshot: str
    profile: Profile
    python: str
    states: tuple[State, ...]
    indexes: Mapping[str, str | None]
    program: tuple[str, ...]
    private: tuple[str, ...] = ()
    channels: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    contested: int = 0
    activated: bool = False
    command: str | None = None

    @property
    def final(self) -> State:
        return self.states[-1]

    @property
    def conda(self) -> bool:
        return self.profile.backend is Backend.CONDA

    @property
    def minor(self) -> str:
        """``3.10``."""
        return ".".join(self.python.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """``files``: name -> text. ``lost``: what the format cannot carry, in sentences."""

    files: Mapping[str, str]
    lost: tuple[str, ...] = ()


def brought(item: Distribution) -> bool:
    """Whether the Python itself, or a conda package, brought it."""
    return item.origin is not None and item.origin.kind in {"python", "conda"}


def installable(item: Distribution) -> bool:
    """Whether it is a distribution that came from a file that is known, and not with the Python."""
    return item.file is not None and item.sha256 is not None and not brought(item) and not is_package(item.name)


def unlockable(item: Distribution) -> bool:
    """Whether no lock gives it back: a program put it there, and its file is not known."""
    return not installable(item) and not brought(item) and not is_package(item.name)


def built(item: Distribution) -> bool:
    """Whether it came from a wheel that no index has."""
    return item.origin is not None and not brought(item)
