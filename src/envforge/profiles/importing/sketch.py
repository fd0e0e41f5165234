"""The profile while it is being put together from a foreign file, with what is assumed and what is left out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envforge.model.draft import Draft, SourceFormat
from envforge.model.profile import (
    DEFAULT_CHANNEL,
    DEFAULT_INDEX,
    Action,
    Backend,
    Conda,
    Index,
    Profile,
    Step,
)
from envforge.profiles import values
from envforge.profiles.importing import addresses
from envforge.profiles.importing.indexes import Ask, Indexes, free
from envforge.profiles.importing.notes import Notes
from envforge.profiles.importing.pythons import DEFAULT
from envforge.profiles.importing.text import Place, broken

_GENERIC = frozenset({
    "requirements", "requirement", "environment", "env", "conda-lock", "pylock", "readme", "install", "setup", "freeze",
})  # fmt: skip
_PYTHON_ONLY = frozenset({"python", "pip", "setuptools", "wheel"})
# Of pip any version will do; who asks for a certain setuptools needs it.
_IN_A_VENV = re.compile(r"(\S+::)?(python|pip)([\s=<>!~\[].*)?|setuptools|wheel")
_NO_ENVIRONMENT = frozenset({"venv", "env", "base", "envs", "virtualenv", "root"})
_STEPS = 1000
_REQUIREMENTS = 10_000


class Sketch(Notes):
    """Gathers the parts; `draft` makes a value of them."""

    def __init__(self, source: Path) -> None:
        super().__init__()
        self.source = source
        self._whole = Place(file=str(source))
        self._count = 0
        self.name: str | None = None
        self.python: str | None = None
        self.backend = Backend.VENV
        self.channels: list[str] = []
        self.complete = False  # no other channels are asked
        self.packages: list[str] = []
        self.environment: dict[str, str] = {}
        self.steps: list[Step] = []
        self._bases: dict[str, tuple[str, ...]] = {}
        self.indexes = Indexes(self, self._whole)

    # -- requirements --------------------------------------------------------------------------------------------------

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
        self._bound(ask.place, len(parsed))
        self.indexes.asked(ask, parsed)
        step = Step(
            name=free(canonicalize_name(parsed[0].name), {step.name for step in self.steps}),
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
        self.give(since, f"steps.{step.name}")

    def other_step(self, action: Action, arguments: tuple[str, ...], stem: str, since: int) -> None:
        """A step that asks no index."""
        self._bound(self._whole, len(arguments))
        name = free(stem, {step.name for step in self.steps})
        self.steps.append(Step(name=name, action=action, arguments=arguments))
        self.give(since, f"steps.{name}")

    def _bound(self, place: Place, count: int) -> None:
        """Refuse what would be more than anybody reads, before it takes for ever."""
        self._count += count
        if len(self.steps) >= _STEPS or self._count > _REQUIREMENTS:
            raise broken(place, f"more than {_STEPS} steps or {_REQUIREMENTS} requirements")

    # -- conda ---------------------------------------------------------------------------------------------------------

    def channel(self, place: Place, channel: str) -> None:
        name = addresses.channel(self.address(place, channel, "conda"))
        if name == "nodefaults":
            self.complete = True
        elif name == "defaults":
            self.lose(place, "the channel `defaults`: conda's configuration says on each host what it is", "conda")
        elif "$" in name or not _is_channel(name):
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

    def _settle_backend(self) -> None:
        """A venv does where conda brings only what a venv has anyway."""
        if self.backend is not Backend.CONDA:
            return
        steps = [step for step in self.steps if step.action is Action.CONDA]
        asked = [*self.packages, *(spec for step in steps for spec in step.arguments)]
        if all(_IN_A_VENV.fullmatch(spec) for spec in asked):
            self.backend = Backend.VENV
            self.assume(self._whole, "a venv: of conda's packages the source wants only Python and pip", "backend")
            for spec in asked:
                if spec not in _PYTHON_ONLY:
                    self.lose(self._whole, f"`{spec}`: a venv has the pip of its Python", "backend")
            self.steps = [step for step in self.steps if step not in steps]
            self.channels, self.packages = [], []
        elif not (self.channels and self.complete) and DEFAULT_CHANNEL not in self.channels:
            self.channels.append(DEFAULT_CHANNEL)
            text = f"the channel `{DEFAULT_CHANNEL}`, in the place of those that each host's conda asks besides"
            self.assume(self._whole, text, "conda")

    # -- the end -------------------------------------------------------------------------------------------------------

    def draft(self, form: SourceFormat, *, name: str | None) -> Draft:
        """The value; ``name`` wins over what the source says."""
        chosen = name or self._own_name()
        indexes = self.indexes.value()
        if self.python is None:
            self.assume(self._whole, "the source names no Python; this is the default", "python")
        self._settle_backend()
        profile = Profile(
            name=chosen,
            source=str(self.source),
            text="",
            summary=f"imported from {self.source.name}",
            python=self.python or DEFAULT,
            backend=self.backend,
            conda=Conda(channels=tuple(self.channels), packages=tuple(self.packages)),
            indexes=indexes,
            environment=dict(self.environment),
            steps=tuple(self._with_indexes(step, indexes) for step in self.steps),
            guards=self.indexes.guards(),
        )
        return Draft(profile=profile, format=form, source=str(self.source), notes=tuple(self._notes))

    def _own_name(self) -> str:
        wanted = self.name
        if wanted is None or wanted.lower() in _NO_ENVIRONMENT:
            wanted = _from_path(self.source)
            self.assume(self._whole, "the name: the source gives none", "name")
        name = as_name(wanted)
        if name != wanted:
            self.assume(self._whole, f"the name: `{wanted}` cannot be one", "name")
        return name

    def _with_indexes(self, step: Step, indexes: tuple[Index, ...]) -> Step:
        """``indexes`` where a step asked fewer than there are; one with ``packages`` is asked by all."""
        base = self._bases.get(step.name)
        if base is None:
            return step
        asked = tuple(index.name for index in indexes if index.name in base or index.packages)
        return step if len(asked) == len(indexes) else replace(step, indexes=asked)


def _is_channel(text: str) -> bool:
    try:
        values.channel(text)
    except ValueError:
        return False
    return True


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
