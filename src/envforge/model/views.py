"""What the looking commands return: one value per command, of which `--json` prints the fields as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .finding import Finding
from .plan import Change
from .profile import Gpu
from .smoked import Smoked


def needs(gpu: Gpu | None) -> str:
    """Which cards a profile is for, in a few words."""
    if gpu is None:
        return "any machine"
    parts = [
        f"compute capability {' or '.join(gpu.compute_capability)}" if gpu.compute_capability else None,
        f"driver {gpu.driver}" if gpu.driver else None,
        f"memory {gpu.memory_gib} GiB" if gpu.memory_gib else None,
        f"count {gpu.count}" if gpu.count else None,
    ]
    return f"GPU with {', '.join(part for part in parts if part) or 'any compute capability'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a profile suits one card; ``reason`` says why not, None where it fits."""

    index: int
    card: str
    uuid: str
    compute_capability: str
    fits: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEntry:
    """One profile that a name on the command line can mean.

    ``origin``: ``project`` (``./profiles``), ``user`` or ``shipped``. ``fits``: the machine as a whole; ``reason`` why
    not. ``problem`` is set, and everything but name and source empty, where the file cannot be read.
    """

    name: str
    source: str
    origin: str
    summary: str = ""
    needs: str | None = None
    fits: bool = True
    reason: str | None = None
    cards: tuple[Fit, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilesView:
    """``machine``: the name of the host whose cards these are."""

    profiles: tuple[ProfileEntry, ...]
    machine: str
    gpus_status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEntry:
    """One environment of the home. ``generation`` None = none is in use (``verdict`` says why).

    ``bytes`` are in files of its current generation alone, ``shared`` in files that the cache or another
    generation links to as well; both None unless asked for.
    """

    name: str
    generation: int | None
    profile: str | None
    verdict: str
    bytes: int | None = None
    shared: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView:
    home: str
    environments: tuple[EnvironmentEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What one step of a build did, as the journal tells it, or what was adopted or accepted (so are ``name`` and
    ``action`` then). ``snapshot`` is None where none was kept.

    ``heals``: id and subject of the findings that were gone after it. ``files``: how many others than those of
    ``changes`` were accepted.
    """

    name: str
    action: str
    snapshot: str | None
    changes: tuple[Change, ...] = ()
    opens: tuple[Finding, ...] = ()
    heals: tuple[tuple[str, str], ...] = ()
    differs: tuple[str, ...] = ()
    seconds: float = 0.0
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRecord:
    """One generation. ``verdict``: ``conforms``, ``2 findings``, ``failed at NAME``, ``interrupted``, ``unfinished``.

    ``started`` and ``finished``: ISO 8601 in UTC; ``built``: its prefix is there.
    """

    number: int
    current: bool
    built: bool
    verdict: str
    profile: str | None = None
    started: str | None = None
    finished: str | None = None
    reason: str | None = None
    steps: tuple[StepRecord, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    environment: str
    generations: tuple[GenerationRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Who built it, when, where and with what."""

    by: str
    made: str
    machine: str
    driver: str | None
    python: str
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A process that uses an environment; ``command`` is its argument vector in one line."""

    pid: int
    user: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """How an audit ended: ``at`` is ISO 8601 in UTC, the rest how many findings of which severity."""

    at: str
    deep: bool
    errors: int
    warnings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Commands that activate an environment with conda: ``by_path`` always, ``by_name`` is None where it would not.

    ``enable``: the command after which the name would do; None where it does already, or could not. ``other``: the path
    of what conda takes for the name instead.
    """

    by_path: str
    by_name: str | None = None
    enable: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowView:
    """``outdated``: the profile found now differs from the recorded one; None where none is found. ``problems``: which
    of its records cannot be read, and why. ``sealed``: None where the journal does not tell. ``adopted``: envforge did
    not build it; ``built`` then tells of the adoption. ``activation``: None for what is no environment of conda's.
    """

    environment: str
    prefix: str | None
    generation: int | None
    verdict: str
    profile: str | None = None
    source: str | None = None
    summary: str = ""
    card: str | None = None
    python: str | None = None
    backend: str | None = None
    built: Maker | None = None
    distributions: int = 0
    steps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    generations: tuple[int, ...] = ()
    outdated: bool | None = None
    outdated_why: str | None = None
    smoke: str | None = None
    restorable: bool | None = None
    problems: tuple[str, ...] = ()
    used_by: tuple[User, ...] = ()
    adopted: bool = False
    sealed: bool | None = None
    audited: Audited | None = None
    activation: Activation | None = None
    smoked: tuple[Smoked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathView:
    environment: str
    generation: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One side of a file that differs: bytes, and the sha256 (hex) as far as it had to be known, else None."""

    size: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file. ``kind``: added, removed, changed, or unknown: on neither record nor disk is what would tell.

    ``path``: relative to the prefix, as it is after, or was before where it is gone. ``owners``: names, empty
    = nobody. ``before`` is None for added, ``after`` for removed, and for what cannot be looked at.
    """

    path: str
    kind: str
    owners: tuple[str, ...] = ()
    before: FileFacts | None = None
    after: FileFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffView:
    """``before`` and ``after`` name what was compared: a snapshot id, or the environment for its present state.

    ``files``: sorted by path; None where they were not asked for.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    files: tuple[FileChange, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveView:
    environment: str
    generations: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """One thing that is gone, or would be.

    ``kind``: ``failed``, ``old`` (generations), ``orphan``, ``cache`` or ``model``.
    ``what``: ``ENV/G``, a path in the home, the name of a distribution or conda package, ``name==version`` of a
    superseded one, or ``HUB/NAME/REVISION`` of a model.
    ``bytes``: what is free once it and all that stands before it are gone; what anything else links to as well counts
    nothing.
    """

    kind: str
    what: str
    bytes: int
    environment: str | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What stays although it could go, and ``why``. ``what``: ``ENV/G``, ``ENV``, or ``cache``."""

    what: str
    why: str
    environment: str | None = None
    generation: int | None = None
    processes: tuple[User, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrestorable:
    """A snapshot that cannot be built again without network. ``distributions``: ``name==version`` of what is gone.

    ``built``: those of them that were built here: no index has the very same, so not even the network gives them back.
    """

    snapshot: str
    distributions: tuple[str, ...]
    built: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneView:
    """``dry_run``: nothing was removed, this is what would be. ``bytes``: the sum of what ``removed`` frees."""

    dry_run: bool
    bytes: int
    removed: tuple[Pruned, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unrestorable: tuple[Unrestorable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A generation that was closed or opened. ``changed``: False where it was so already.

    ``files``, ``folders``: how many got other permissions; ``shared``: how many files the cache or other environments
    link to as well.
    """

    environment: str
    generation: int
    sealed: bool
    changed: bool
    files: int
    folders: int
    shared: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """``subject``: ``ENV/G.K``, or the name of a profile. ``file``: where the lock was written; None where it was not.

    ``explicit``: where the list of its conda packages was written, for conda itself; None where there are none.
    ``lost``: what the lock cannot carry, in sentences. ``text``: the lock; empty where a guard ended open.
    """

    subject: str
    file: str | None
    explicit: str | None
    steps: tuple[str, ...]
    distributions: int
    lost: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleView:
    """``written``: paths of the bundle, or of its parts in order; ``bytes`` and ``sha256`` of all together.

    ``wheels``: how many, of which ``built`` were built here; ``packages``: how many of conda; ``models``: how many of a
    hub. ``python``: the version that it was built with; where ``python_from`` is ``host`` and not ``bundle``, the other
    host needs one of the same minor. ``architecture``, ``glibc``: what else all that is in it needs of that host, None
    where it does not matter; ``program_python``: the minor version that envforge itself needs there. ``lost``: what a
    bundle cannot carry, in sentences.
    """

    environment: str
    snapshot: str
    written: tuple[str, ...]
    bytes: int
    sha256: str
    wheels: int
    built: int
    packages: int
    models: int
    python: str
    python_from: str
    architecture: str
    glibc: str | None
    program_python: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportView:
    """``files``: name -> text, one or several. ``written``: the paths of those that were written.

    ``lost``: what the format cannot carry, in sentences.
    """

    environment: str
    snapshot: str
    format: str
    files: Mapping[str, str]
    lost: tuple[str, ...]
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedFile:
    """A compiled file with GPU code, or one that could not be read (``trouble`` says why)."""

    path: str
    code: tuple[str, ...] = ()
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """The compiled files of one distribution, or of nobody (``name`` None).

    ``objects``: how many; ``code``: ``sm_70``, ``sm_90a``, ``ptx_80``; ``fits``: those of the view's ``cards`` for
    which one of its files has code; ``files``: those with GPU code or trouble.
    """

    name: str | None
    version: str | None
    objects: int
    code: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()
    files: tuple[InspectedFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectView:
    """``kind``: ``environment``, ``wheel`` or ``file``; ``cards``: the compute capabilities that it was judged for."""

    subject: str
    kind: str
    cards: tuple[str, ...]
    distributions: tuple[Inspected, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Who imports a module that it does not require. ``place``: file and line, relative to site-packages."""

    distribution: str
    version: str
    module: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that the profile names. ``hub``: ``modelscope``, ``huggingface`` or ``path``.

    ``revision``: as the profile has it; ``commit``: what that was when it was fetched, None where the hub names none.
    ``condition``: ``whole``, ``partial``, ``damaged`` or ``absent``. ``bytes``: that lie there now. ``fetched``: by
    this very command.
    """

    name: str
    hub: str
    revision: str
    commit: str | None
    path: str
    condition: str
    bytes: int
    fetched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsView:
    """``folder``: what `ENVFORGE_MODELS` says."""

    environment: str
    generation: int
    folder: str
    models: tuple[ModelEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One line of a ``backfill``. ``present``: the distribution is there, but for others' sake.

    ``assumed``: its name is taken from the module's, which nothing confirms.
    """

    requirement: str
    present: bool
    assumed: bool
    importers: tuple[Importer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestView:
    """``distributions``: how many were looked at; ``read``: of how many the code was read, since nothing was kept.

    ``unread``: files, relative to site-packages, of which nothing is known.
    """

    environment: str
    generation: int
    backfill: tuple[Suggestion, ...]
    distributions: int
    read: int
    unread: tuple[str, ...] = ()
