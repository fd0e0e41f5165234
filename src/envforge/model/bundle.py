"""A bundle: one file with all that builds an environment on a host without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Protocol

BUNDLE_SCHEMA = 1
HOST = "host"
"""Where the Python of the environment comes from: the host that it is built on."""
BROUGHT = "bundle"
"""The bundle brings it, as a conda package."""


class Stored(Protocol):
    """A file's bytes, wherever they lie: ``size`` of them."""

    @property
    def size(self) -> int: ...

    def open(self) -> BinaryIO: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of a bundle. ``size`` in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What compiled files need of a host: its architecture, and at least this glibc. None where none says so."""

    architecture: str | None = None
    glibc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The envforge that a bundle carries. ``python``: ``3.11``; ``abi``: the SOABI of the Pythons that can run it."""

    version: str
    python: str
    abi: str
    needs: Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What stands in a bundle's ``manifest.json``.

    ``environment`` is the name it had. ``python``: the version that it was built with; ``python_from``: `HOST` or
    `BROUGHT`.
    ``members``: all files but the manifest itself, in their order.
    """

    environment: str
    python: str
    python_from: str
    needs: Needs
    program: Program
    members: tuple[Member, ...]
