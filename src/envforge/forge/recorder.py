"""Remembers what an environment holds: a snapshot, its lock, the bytes that no lock gives back, what a wheel takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envforge.model.snapshot import BuiltFor, Snapshot
from envforge.model.state import Observation, State, distributions
from envforge.probe import conda_meta
from envforge.store import contents, pylock, snapshots
from envforge.system import clock, environ

from .bench import Bench
from .shop import Shop


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Of one generation. ``driver``: the host's; ``cards``: those of the host that the profile is for."""

    shop: Shop
    work: Bench
    name: str
    generation: int
    driver: str | None
    cards: tuple[BuiltFor, ...]

    def remember(
        self,
        position: int,
        step: str | None,
        observation: Observation,
        state: State,
        lies: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Keep ``state`` as the snapshot after step ``position``; ``lies``: see `Known`.

        Raises EnvforgeError ``home-not-writable``.
        """
        work = self.work
        built = {
            item.sha256: str(work.built.path(item.sha256))
            for item in state.values()
            if item.origin is not None and item.sha256 is not None
        }
        lock = pylock.render(
            distributions(state),
            python=work.facts.version,
            indexes={origin.name: origin.url for origin in work.routes.origins.values()},
            built=built,
        )
        snapshot = Snapshot(
            environment=self.name,
            generation=self.generation,
            step=position,
            step_name=step,
            made=clock.now(),
            by=environ.user(),
            machine=environ.hostname(),
            driver=self.driver,
            cards=self.cards,
            python=work.facts.version,
            engine=self.shop.settings.engine,
            state=state,
            files=observation.files,
        )
        # The bytes come first: where the snapshot exists, all that it needs does.
        prefix = self.shop.home.prefix(self.name, self.generation)
        for clash in observation.clashes:
            if clash.actual is not None:
                contents.keep(self.shop.home, self.name, self.generation, prefix / clash.path, clash.actual)
        for row in observation.files:
            # A record in conda-meta is of one prefix: no package gives it back as it was.
            ours = not row.owners or row.path.startswith(f"{conda_meta.FOLDER}/")
            if ours and row.sha256 is not None and row.size <= contents.LARGEST:
                contents.keep(self.shop.home, self.name, self.generation, prefix / row.path, row.sha256)
        snapshots.write(self.shop.home, snapshot, lock)
        work.known.learn(observation, state, lies)
