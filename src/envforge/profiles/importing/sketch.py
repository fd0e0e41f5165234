"""The profile while it is being put together from a foreign file, with what is assumed and what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envforge.model.draft import Draft, ImportNote, NoteKind, SourceFormat
from envforge.model.profile import (
    DEFAULT_INDEX,
    Action,
    Backend,
    Conda,
    Guard,
    Index,
    Keep,
    Profile,
    Step,
)
from envforge.profiles.importing import addresses
from envforge.profiles.importing.pythons import DEFAULT
from envforge.profiles.importing.text import Place

_GENERIC = frozenset(
    {
        "requirements",
        "requirement",
        "environment",
        "env",
        "conda-lock",
        "pylock",
        "readme",
        "install",
        "setup",
        "freeze",
    }
)
_PYTHON_ONLY = frozenset({"python", "pip", "setuptools", "wheel"})
_NO_ENVIRONMENT = frozenset({"venv", "env", "base", "envs", "virtualenv", "root"})
_CREDENTIALS = "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
_OTHERS = "no profile holds them"


@dataclass(slots=True, kw_only=True)
class Ask:
    """One `pip install` while its words are read. ``indexes``: names that it gave; ``base``: what it asks besides."""

    place: Place
    requirements: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    base: bool = True
    upgrade: bool = False
    no_deps: bool = False
    no_build_isolation: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    """Whether it is the only one of its source: what it says of indexes then holds for all."""


class Sketch:
    """Gathers the parts; `draft` makes a value of them."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.name: str | None = None
        self.python: str | None = None
        self.backend = Backend.VENV
        self.channels: list[str] = []
        self.packages: list[str] = []
        self.environment: dict[str, str] = {}
        self.steps: list[Step] = []
        self._bases: dict[str, tuple[str, ...]] = {}
        self._indexes: dict[str, Index] = {}
        self._default: str | None = None
        self._first: dict[str, Place] = {}
        self._notes: list[ImportNote] = []
        self._told: set[tuple[str, str, NoteKind]] = set()
        self._builds: dict[str, Place] = {}
        self._kept: list[str] = []
        self._links: list[addresses.TorchIndex] = []
        self._names: set[str] = set()

    # -- notes ---------------------------------------------------------------------------------------------------------

    def assume(self, place: Place, text: str, about: str = "") -> None:
        self._note(place, text, NoteKind.ASSUMED, about)

    def lose(self, place: Place, text: str, about: str = "") -> None:
        self._note(place, text, NoteKind.LOST, about)

    def _note(self, place: Place, text: str, kind: NoteKind, about: str) -> None:
        """The same is told once a file, at its first line."""
        shown, _ = addresses.bare(text)
        if (place.file, shown, kind) not in self._told:
            self._told.add((place.file, shown, kind))
            self._notes.append(ImportNote(file=place.file, line=place.line, text=shown, kind=kind, about=about))

    @property
    def noted(self) -> int:
        """How many notes there are: what comes after can be given to a part."""
        return len(self._notes)

    def _give(self, since: int, about: str) -> None:
        """Let the notes from ``since`` on that belong to nothing yet belong to ``about``."""
        self._notes[since:] = [note if note.about else replace(note, about=about) for note in self._notes[since:]]

    # -- indexes -------------------------------------------------------------------------------------------------------

    def address(self, place: Place, url: str, about: str = "") -> str:
        """``url`` without credentials; that it had such is told."""
        text, hidden = addresses.bare(url.strip())
        if hidden:
            self.lose(
                place, f"credentials in the URL `{text}`: {_CREDENTIALS if about == 'indexes' else _OTHERS}", about
            )
        return text

    def index(self, place: Place, ask: Ask, url: str, *, instead: bool) -> None:
        """An index that ``ask`` names; ``instead``: of the default one, not besides."""
        address = self.address(place, url, "indexes")
        if not addresses.is_index(address):
            self.lose(place, f"the index `{address}`: it is no whole address with `http://` or `https://`", "indexes")
            return
        torch = addresses.torch_index(address)
        if torch is not None:
            self._torch(place, torch, torch.build, ask)
        elif addresses.is_default(address):
            if instead and ask.whole:
                self._default = None
        elif instead and ask.whole:
            self._default = address
            text = f"`{DEFAULT_INDEX}` is this index; if it is a mirror, leave out its `url` and configure it as such"
            self.assume(place, text, "indexes")
        else:
            self._named(place, address, ask)
            ask.base = ask.base and not instead

    def _torch(self, place: Place, torch: addresses.TorchIndex, build: str | None, ask: Ask | None) -> None:
        name, url = torch.of(build)
        known = name in self._indexes
        self._indexes.setdefault(name, Index(name=name, url=url, packages=addresses.TORCH))
        if not known:
            text = f"only {', '.join(addresses.TORCH)} come from `{name}`, and what they require from the others"
            self.assume(place, text, "indexes")
        if ask is not None:
            ask.indexes.append(name)

    def _named(self, place: Place, address: str, ask: Ask) -> None:
        name = next((index.name for index in self._indexes.values() if index.url == address), None)
        if name is None:
            stem = addresses.index_name(address)
            name = self._free(DEFAULT_INDEX + "-extra" if stem == DEFAULT_INDEX else stem, self._indexes)
            self._indexes[name] = Index(name=name, url=address)
            self._first[name] = place
        ask.indexes.append(name)

    def serves(self, url: str, names: Iterable[str]) -> str:
        """The index with that address serves just these names; returns what it is called."""
        torch = addresses.torch_index(url)
        known = next((index.name for index in self._indexes.values() if index.url == url), None)
        name, address = (
            torch.of(torch.build) if torch else (known or self._free(addresses.index_name(url), self._indexes), url)
        )
        before = self._indexes[name].packages if name in self._indexes else ()
        self._indexes[name] = Index(name=name, url=address, packages=tuple(dict.fromkeys((*before, *names))))
        return name

    def default(self, url: str) -> None:
        """The index that stands for the default one."""
        self._default = None if addresses.is_default(url) else url

    def links(self, place: Place, url: str) -> None:
        """A page of links: PyTorch's are indexes too, of others a profile knows nothing."""
        address = self.address(place, url, "indexes")
        torch = addresses.torch_index(address)
        if torch is None:
            self.lose(place, f"the links at `{address}`: a profile knows indexes only", "indexes")
        elif torch.build is not None:
            self._torch(place, torch, torch.build, None)
        else:
            self._links.append(torch)

    # -- requirements --------------------------------------------------------------------------------------------------

    def build(self, place: Place, name: str, local: str) -> None:
        """``name`` was asked for with a local version, which the index must bring."""
        self._kept.append(name)
        if addresses.is_build(local):
            self._builds.setdefault(local, place)
            self.assume(place, f"`+{local}` is left to the index, and `keep` guards it")
        else:
            self.lose(place, f"`+{local}` of `{name}`: a build of its own, which needs an index that has it")

    def install(self, ask: Ask, since: int) -> None:
        """The step of one `pip install`, if it asks for anything; ``since``: as `noted` was before it was read."""
        requirements = tuple(dict.fromkeys(ask.requirements))
        if not requirements:
            return
        parsed = [Requirement(text) for text in requirements]
        apart: tuple[str, ...] = ()
        if ask.no_build_isolation:
            apart = tuple(dict.fromkeys(canonicalize_name(one.name) for one in parsed if one.url is None))
            if any(one.url for one in parsed):
                self.lose(
                    ask.place, "`--no-build-isolation` for what comes from a URL or path: it is built in isolation"
                )
        names = [canonicalize_name(one.name) for one in parsed]
        self._names.update(names)
        step = Step(
            name=self._free(names[0], [step.name for step in self.steps]),
            action=Action.INSTALL,
            arguments=requirements,
            upgrade=ask.upgrade,
            no_deps=ask.no_deps,
            no_build_isolation=apart,
            constraints=tuple(dict.fromkeys(ask.constraints)),
            environment=dict(ask.environment),
        )
        self.steps.append(step)
        self._bases[step.name] = tuple(dict.fromkeys((*ask.indexes, *([DEFAULT_INDEX] if ask.base else []))))
        self._give(since, f"steps.{step.name}")

    def other_step(self, action: Action, arguments: tuple[str, ...], stem: str, since: int) -> None:
        """A step that asks no index."""
        name = self._free(stem, [step.name for step in self.steps])
        self.steps.append(Step(name=name, action=action, arguments=arguments))
        self._give(since, f"steps.{name}")

    @staticmethod
    def _free(stem: str, taken: Iterable[str]) -> str:
        names = set(taken)
        number = 2
        found = stem
        while found in names:
            found, number = f"{stem}-{number}", number + 1
        return found

    # -- conda ---------------------------------------------------------------------------------------------------------

    def channel(self, place: Place, channel: str) -> None:
        name = self.address(place, channel, "conda")
        if name == "nodefaults":
            return  # only the channels that are listed are asked
        if "$" in name or not name.strip():
            self.lose(place, f"the channel `{name}`", "conda")
        elif name not in self.channels:
            self.channels.append(name)

    def wants_python(self, place: Place, found: str | None, asked: str) -> None:
        """The Python that the source asks for; ``found`` is None where ``asked`` is not understood."""
        if found is None:
            self.lose(place, f"`{asked}` as the Python: a profile takes 3.x or a version specifier", "python")
        elif self.python is not None and self.python != found:
            self.lose(place, f"`{asked}` as the Python: `{self.python}` came first", "python")
        else:
            self.python = found

    # -- the end -------------------------------------------------------------------------------------------------------

    def draft(self, form: SourceFormat, *, name: str | None) -> Draft:
        """The value; ``name`` wins over what the source says."""
        chosen = name or self._own_name()
        self._find_builds()
        self._narrow()
        if self.python is None:
            self.assume(Place(file=str(self.source)), "the source names no Python; this is the default", "python")
        if self.backend is Backend.CONDA:
            self._tell_of_conda()
        profile = Profile(
            name=chosen,
            source=str(self.source),
            text="",
            summary=f"imported from {self.source.name}",
            python=self.python or DEFAULT,
            backend=self.backend,
            conda=Conda(channels=tuple(self.channels), packages=tuple(self.packages)),
            indexes=(*self._indexes.values(), Index(name=DEFAULT_INDEX, url=self._default)),
            environment=dict(self.environment),
            steps=self._steps_with_indexes(),
            guards=self._guards(),
        )
        return Draft(profile=profile, format=form, source=str(self.source), notes=tuple(self._notes))

    def _own_name(self) -> str:
        whole = Place(file=str(self.source))
        wanted = self.name
        if wanted is None or wanted.lower() in _NO_ENVIRONMENT:
            wanted = _from_path(self.source)
            self.assume(whole, "the name: the source gives none", "name")
        name = as_name(wanted)
        if name != wanted:
            self.assume(whole, f"the name: `{wanted}` cannot be one", "name")
        return name

    def _find_builds(self) -> None:
        """Every build that a local version named must have its index."""
        for build, place in self._builds.items():
            if any(name.startswith("torch") and name.endswith(f"-{build}") for name in self._indexes):
                continue
            if any(index.name == "torch" for index in self._indexes.values()):
                continue
            if self._links:
                self._torch(place, self._links[0], build, None)
                continue
            entry = f"`{{name: torch-{build}, url: ..., packages: [{', '.join(addresses.TORCH)}]}}`"
            self.lose(place, f"`+{build}`: no index here serves that build; add one such as {entry}", "indexes")
        if self._links and not self._builds:
            self.lose(
                Place(file=str(self.source)),
                "PyTorch's page of links: name the build that is wanted as an index",
                "indexes",
            )

    def _narrow(self) -> None:
        """An index that is called like what is asked for is there for that."""
        for index in tuple(self._indexes.values()):
            if not index.packages and index.name in self._names:
                self._indexes[index.name] = replace(index, packages=(index.name,))
                self.assume(
                    self._first[index.name], f"only `{index.name}` comes from the index `{index.name}`", "indexes"
                )
            elif not index.packages:
                text = f"the first index that knows a name serves it, so `{index.name}` before `{DEFAULT_INDEX}`"
                self.assume(self._first[index.name], f"{text}; better list its `packages`", "indexes")

    def _guards(self) -> tuple[Guard, ...]:
        torch = any(set(addresses.TORCH) & set(index.packages) for index in self._indexes.values())
        kept = [name for name in dict.fromkeys(self._kept) if name not in addresses.TORCH]
        names = [*(addresses.TORCH if torch or len(kept) < len(set(self._kept)) else ()), *kept]
        if not names:
            return ()
        because = "another build of one of them, from another index, would break the set"
        self.assume(Place(file=str(self.source)), "the builds chosen by index are to stay", "guards")
        return (Keep(names=tuple(names), because=because),)

    def _steps_with_indexes(self) -> tuple[Step, ...]:
        """``indexes`` where a step asked fewer than there are; one with ``packages`` is asked by all."""
        everywhere = [index.name for index in self._indexes.values() if index.packages]
        order = [*self._indexes, DEFAULT_INDEX]
        found = []
        for step in self.steps:
            base = self._bases.get(step.name)
            if base is not None:
                asked = [name for name in order if name in base or name in everywhere]
                if asked != order:
                    step = replace(step, indexes=tuple(asked))  # noqa: PLW2901 - the same step, completed
            found.append(step)
        return tuple(found)

    def _tell_of_conda(self) -> None:
        whole = Place(file=str(self.source))
        # As long as the backend is not there.
        self.assume(whole, "the backend of the source; this version reads it and cannot build it yet", "backend")
        steps = [argument for step in self.steps if step.action is Action.CONDA for argument in step.arguments]
        if all(
            re.split(r"[^\w.-]", spec.rpartition("::")[2], maxsplit=1)[0] in _PYTHON_ONLY
            for spec in [*self.packages, *steps]
        ):
            text = "conda brings only Python and pip here, so `backend: venv` without `conda` would do"
            self.assume(whole, text, "backend")


def _from_path(path: Path) -> str:
    """What it is about: ``server`` for ``server.yml``, ``pylock.server.toml`` and ``server/environment.yml``."""
    stem = path.name.partition(".")[0] if not path.name.startswith(".") else path.stem
    middle = path.name.split(".")[1:-1]
    if stem.lower() == "pylock" and middle:
        return ".".join(middle)
    return path.absolute().parent.name or stem if stem.lower() in _GENERIC else stem


def as_name(text: str) -> str:
    """``text`` as a profile's name: letters, digits, ``.``, ``_`` and ``-``, beginning with a letter or digit."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._-").rstrip("-")[:100] or "imported"
