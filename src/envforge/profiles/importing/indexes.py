"""The indexes that a source names or needs, with what each serves and the builds that must stay."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envforge.model.profile import DEFAULT_INDEX, Guard, Index, Keep
from envforge.profiles.importing import addresses
from envforge.profiles.importing.notes import Notes
from envforge.profiles.importing.text import Place


@dataclass(slots=True, kw_only=True)
class Ask:
    """One `pip install` while its words are read.

    ``indexes``: names that it gave; ``base``: whether it asks the default one, too. ``instead``: PyTorch's index that
    it names for all, if ``besides`` does not say that there are others.
    """

    place: Place
    requirements: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    base: bool = True
    instead: str | None = None
    besides: bool = False
    upgrade: bool = False
    no_deps: bool = False
    no_build_isolation: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    """Whether it is the only one of its source: what it says of indexes then holds for all."""


class Indexes:
    """Gathers the indexes; what is to be told of them goes to ``notes``."""

    def __init__(self, notes: Notes, whole: Place) -> None:
        self._notes = notes
        self._whole = whole
        self._indexes: dict[str, Index] = {}
        self._default: str | None = None
        self._first: dict[str, Place] = {}
        self._builds: dict[str, Place] = {}
        self._kept: list[str] = []
        self._links: list[addresses.TorchIndex] = []
        self._names: set[str] = set()

    def index(self, place: Place, ask: Ask, url: str, *, instead: bool) -> None:
        """An index that ``ask`` names; ``instead``: of the default one, not besides."""
        address = self._notes.address(place, url, "indexes")
        if not addresses.is_index(address):
            self._notes.lose(
                place, f"the index `{address}`: it is no whole address with `http://` or `https://`", "indexes"
            )
            return
        torch = addresses.torch_index(address)
        ask.besides = ask.besides or not instead
        if torch is not None:
            name = self._torch(place, torch, torch.build)
            ask.indexes.append(name)
            ask.instead = name if instead else ask.instead
        elif addresses.is_default(address):
            if instead and ask.whole:
                self._default = None
        elif instead and ask.whole:
            self._default = address
            text = f"`{DEFAULT_INDEX}` is this index; if it is a mirror, leave out its `url` and configure it as such"
            self._notes.assume(place, text, "indexes")
        else:
            self._named(place, address, ask)
            ask.base = ask.base and not instead

    def _torch(self, place: Place, torch: addresses.TorchIndex, build: str | None) -> str:
        name, url = torch.of(build)
        self._indexes.setdefault(name, Index(name=name, url=url, packages=addresses.TORCH))
        self._first.setdefault(name, place)
        return name

    def _named(self, place: Place, address: str, ask: Ask) -> None:
        name = next((index.name for index in self._indexes.values() if index.url == address), None)
        if name is None:
            stem = addresses.index_name(address)
            name = free(DEFAULT_INDEX + "-extra" if stem == DEFAULT_INDEX else stem, self._indexes)
            self._indexes[name] = Index(name=name, url=address)
            self._first[name] = place
        ask.indexes.append(name)

    def serves(self, url: str, names: Iterable[str]) -> str:
        """The index with that address serves just these names; returns what it is called."""
        torch = addresses.torch_index(url)
        known = next((index.name for index in self._indexes.values() if index.url == url), None)
        name, address = (
            torch.of(torch.build) if torch else (known or free(addresses.index_name(url), self._indexes), url)
        )
        before = self._indexes[name].packages if name in self._indexes else ()
        self._indexes[name] = Index(name=name, url=address, packages=tuple(dict.fromkeys((*before, *names))))
        return name

    def default(self, url: str) -> None:
        """The index that stands for the default one."""
        self._default = None if addresses.is_default(url) else url

    def links(self, place: Place, url: str) -> None:
        """A page of links: PyTorch's are indexes too, of others a profile knows nothing."""
        address = self._notes.address(place, url, "indexes")
        torch = addresses.torch_index(address)
        if torch is None:
            self._notes.lose(place, f"the links at `{address}`: a profile knows indexes only", "indexes")
        elif torch.build is not None:
            self._torch(place, torch, torch.build)
        else:
            self._links.append(torch)

    def build(self, place: Place, name: str, local: str) -> None:
        """``name`` was asked for with a local version, which the index must bring."""
        self._kept.append(name)
        if addresses.is_build(local):
            self._builds.setdefault(local, place)
            self._notes.assume(place, f"`+{local}` is left to the index, and `keep` guards it")
        else:
            self._notes.lose(place, f"`+{local}` of `{name}`: a build of its own, which needs an index that has it")

    def asked(self, ask: Ask, requirements: Iterable[Requirement]) -> None:
        """Note what ``ask`` wants; what one of PyTorch's indexes is asked for alone comes from it."""
        parsed = tuple(requirements)
        self._names.update(canonicalize_name(one.name) for one in parsed)
        if ask.instead is not None and not ask.besides:
            index = self._indexes[ask.instead]
            names = [canonicalize_name(one.name) for one in parsed if one.url is None]
            self._indexes[ask.instead] = replace(index, packages=tuple(dict.fromkeys((*index.packages, *names))))

    def value(self) -> tuple[Index, ...]:
        """All of them in the order in which they are asked, the default one last."""
        self._find_builds()
        self._narrow()
        return (*self._indexes.values(), Index(name=DEFAULT_INDEX, url=self._default))

    def _find_builds(self) -> None:
        """Every build that a local version named must have its index."""
        for build, place in self._builds.items():
            if any(name.startswith("torch") and name.endswith(f"-{build}") for name in self._indexes):
                continue
            if any(index.name == "torch" for index in self._indexes.values()):
                continue
            if self._links:
                self._torch(place, self._links[0], build)
                continue
            entry = f"`{{name: torch-{build}, url: ..., packages: [{', '.join(addresses.TORCH)}]}}`"
            self._notes.lose(place, f"`+{build}`: no index here serves that build; add one such as {entry}", "indexes")
        if self._links and not self._builds:
            self._notes.lose(
                self._whole,
                "PyTorch's page of links: name the build that is wanted as an index",
                "indexes",
            )

    def _narrow(self) -> None:
        """Say what every index serves; one that is called like what is asked for is there for that."""
        for index in tuple(self._indexes.values()):
            place = self._first.get(index.name)
            if place is None:
                continue  # a lock said what it serves
            packages = index.packages or ((index.name,) if index.name in self._names else ())
            if packages:
                self._indexes[index.name] = replace(index, packages=packages)
                listed = ", ".join(packages)
                text = f"`{index.name}` serves {listed}; what else they require comes from the others"
            else:
                text = (
                    f"the first index that knows a name serves it, so `{index.name}` before `{DEFAULT_INDEX}`; "
                    "better list its `packages`"
                )
            self._notes.assume(place, text, "indexes")

    def guards(self) -> tuple[Guard, ...]:
        torch = any(set(addresses.TORCH) & set(index.packages) for index in self._indexes.values())
        kept = [name for name in dict.fromkeys(self._kept) if name not in addresses.TORCH]
        names = [*(addresses.TORCH if torch or len(kept) < len(set(self._kept)) else ()), *kept]
        if not names:
            return ()
        because = "another build of one of them, from another index, would break the set"
        self._notes.assume(self._whole, "the builds chosen by index are to stay", "guards")
        return (Keep(names=tuple(names), because=because),)


def free(stem: str, taken: Container[str]) -> str:
    """``stem``, with a number behind it where that name is taken."""
    found = stem
    number = 2
    while found in taken:
        found, number = f"{stem}-{number}", number + 1
    return found
