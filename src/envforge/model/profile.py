"""A profile as it stands after recipes and ``extends`` are expanded (spec 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DEFAULT_INDEX = "pypi"
DEFAULT_CHANNEL = "conda-forge"


class Backend(StrEnum):
    VENV = "venv"
    CONDA = "conda"


class Action(StrEnum):
    INSTALL = "install"
    BACKFILL = "backfill"
    PIN = "pin"
    UNINSTALL = "uninstall"
    CONDA = "conda"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """``url`` is None only for ``pypi``. ``packages``: canonical names or ``fnmatch`` patterns; empty = any name."""

    name: str
    url: str | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One ordered change.

    ``arguments``: requirements for install, backfill and pin; canonical names for uninstall; match specs for
    conda; the argument vector for run. ``indexes`` None = all of the profile's. ``upgrade``: True = every
    requirement of the step. ``allow``: kept names that may change here. ``recipe``: where it came from.
    """

    name: str
    action: Action
    arguments: tuple[str, ...]
    indexes: tuple[str, ...] | None = None
    upgrade: bool = False
    no_deps: bool = False
    no_build_isolation: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    recipe: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What every kind of guard may carry: why, and where that is written down."""

    because: str | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep(Guard):
    """These distributions (canonical names or patterns), once installed, stay the very same build."""

    names: tuple[str, ...]
    constrain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Guard):
    """An installed distribution satisfies ``requirement`` (PEP 508); an absent one does not violate it."""

    requirement: str
    constrain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbid(Guard):
    """No installed distribution matches one of these canonical names or ``fnmatch`` patterns."""

    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol(Guard):
    """The shared object named ``library`` in the environment defines the dynamic symbol ``symbol``."""

    symbol: str
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Findings of this id (and, if given, subject or ``fnmatch`` pattern of it) are lowered to severity info."""

    id: str
    subject: str | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is known of one release of the distribution ``name`` (canonical), for cards.

    ``compute_capability``: specifiers, any of them; empty = nothing is known. ``essential``: ``fnmatch`` patterns of
    file names, of objects without whose GPU code it is of no use.
    """

    name: str
    version: str
    compute_capability: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    reference: str | None = None


class SmokeKind(StrEnum):
    IMPORT = "import"
    PYTHON = "python"
    COMMAND = "command"
    GENERATE = "generate"


class Device(StrEnum):
    CUDA = "cuda"
    CPU = "cpu"


class Generator(StrEnum):
    VLLM = "vllm"
    TRANSFORMERS = "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """What is generated. ``model``: an absolute path, or what a hub calls it; ``dtype``: ``auto``, ``float16``, ...

    ``expect``: a text that must be in what comes out; None = anything but blanks.
    """

    engine: Generator
    model: str
    prompt: str
    dtype: str = "auto"
    expect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """One proof that it works. ``arguments``: module names; one piece of source; an argument vector; none to generate.

    ``timeout`` in seconds. ``name`` is what the report calls it. ``device``: ``cuda`` needs a card, ``cpu`` sees none,
    None takes what there is.
    """

    kind: SmokeKind
    arguments: tuple[str, ...]
    name: str
    timeout: float = 300.0
    device: Device | None = None
    generate: Generate | None = None


class Hub(StrEnum):
    MODELSCOPE = "modelscope"
    HUGGINGFACE = "huggingface"
    PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Weights that what runs in the environment needs. ``revision``: a branch, tag or commit; empty for `Hub.PATH`.

    ``path``: where one of `Hub.PATH` lies, absolute or from ``~``; None for every other.
    """

    name: str
    hub: Hub
    revision: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Which cards fit; every specifier is PEP 440. ``compute_capability``: any of them; empty = any card."""

    compute_capability: tuple[str, ...] = ()
    driver: str | None = None
    memory_gib: str | None = None
    count: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conda:
    channels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything a build needs to know; ``source`` is the path it was read from, ``text`` its expanded YAML.

    ``text`` is what is kept in the records: it loads again without recipes or ``extends``. ``sealed``: what is built is
    read-only. ``overridden``: ``backend`` is not what the file says, but was asked for.
    """

    name: str
    source: str
    text: str
    summary: str = ""
    gpu: Gpu | None = None
    python: str = "3.11"
    backend: Backend = Backend.VENV
    conda: Conda = field(default_factory=Conda)
    indexes: tuple[Index, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    guards: tuple[Guard, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    releases: tuple[Release, ...] = ()
    smoke: tuple[Smoke, ...] = ()
    models: tuple[Model, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sealed: bool = False
    overridden: bool = False

    @property
    def variables(self) -> Mapping[str, str]:
        """All that is set for what runs in the environment: the user's own site-packages are never looked into."""
        return {**self.environment, "PYTHONNOUSERSITE": "1"}
