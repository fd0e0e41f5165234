"""The conda packages of a generation under construction: its base, and its steps of kind conda."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envforge.engines import conda_notes
from envforge.model.plan import StepPlan
from envforge.model.profile import Profile
from envforge.model.progress import Note
from envforge.model.state import FileRow, State
from envforge.model.state import packages as packages_of
from envforge.rules.diff import changes as differences

from . import packages
from .bench import Bench
from .ground import specs
from .shop import Shop
from .watching import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaBuild:
    """For one ``prefix``."""

    shop: Shop
    work: Bench
    profile: Profile
    prefix: Path

    def base(self, expected: State, log: Path) -> None:
        """Lay out the packages before the first step. Raises EnvforgeError."""
        asked = specs(self.profile)
        other = conda_notes.changed(self.profile.variables)
        if other:
            names = ", ".join(f"`{name}`" for name in other)
            text = f"`conda activate` cannot set {names} as the profile has it; `envforge run` does"
            self.shop.tell(Note(text=text, level="warning"))
        wanted = packages_of(expected)
        size = sum(item.size or 0 for item in wanted.values())
        with Watched(self.shop, f"base: {len(wanted)} conda packages", size) as watch:
            packages.whole(
                self.shop, packages.engine(self.work), self.prefix, wanted,
                what=f"the base of `{self.profile.name}`", asked=asked, log=log, watch=watch,
            )  # fmt: skip
        self._noted({}, wanted, asked)

    def step(self, position: int, predicted: StepPlan, state: State, rows: Iterable[FileRow], log: Path) -> None:
        """Do a step of kind conda in what holds ``state`` and has the files ``rows``. Raises EnvforgeError."""
        step, wanted = predicted.step, packages_of(predicted.state)
        if not differences(packages_of(state), wanted):
            return
        fetch = sum(change.download or 0 for change in predicted.changes)
        with Watched(self.shop, f"{step.name}: {len(predicted.changes)} conda packages", fetch) as watch:
            packages.apply(
                self.shop, self.work, self.prefix, step, before=state, wanted=wanted, rows=rows,
                asked=specs(self.profile, position), log=log, watch=watch,
            )  # fmt: skip
        self._noted(state, wanted, step.arguments)

    def _noted(self, before: State, after: State, asked: Sequence[str]) -> None:
        """Write down what conda wants to know of the prefix besides its packages."""
        conda_notes.history(self.prefix, f"envforge: {self.profile.name}", before, after, asked)
        conda_notes.state(self.prefix, self.profile.variables)
        for script in packages.unrun(self.prefix, before, after):
            text = f"`{script}`, which conda would run now, is not run: no package's scripts are"
            self.shop.tell(Note(text=text, level="warning"))
