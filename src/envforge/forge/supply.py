"""Files of wheels brought beside a prefix and proved to be the recorded ones, before any of them is put in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envforge.engines.artefacts import Artefact
from envforge.model.errors import EnvforgeError
from envforge.model.progress import Note, Working
from envforge.model.repair import Lost, Restoration
from envforge.model.snapshot import Snapshot
from envforge.model.state import Distribution
from envforge.probe import drift as drifts
from envforge.probe import hashing
from envforge.probe import prefix as prefixes

from .bench import Bench
from .plan import bundled_pip
from .shop import Shop


@dataclass(slots=True, kw_only=True)
class Supplied:
    """``ready``: path in the prefix -> the file to move there and its sha256 (hex); ``evicted``: canonical names."""

    ready: dict[str, tuple[Path, str]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where files are brought for one prefix. ``whole``: its snapshot with the files; ``beside``: a new folder on the
    same file system; ``kept``: a folder laid out like the prefix, with what the records hold of what is wanted.
    """

    shop: Shop
    work: Bench
    prefix: Path
    whole: Snapshot
    beside: Path
    kept: Path
    log: Path


class Supply(Place):
    """Brings what wheels hold."""

    __slots__ = ()

    def bring(self, wanted: Sequence[Restoration], *, with_pip: bool) -> Supplied:
        """The files of ``wanted`` (source ``wheel``) that can be had exactly as they were recorded.

        They come by the engine that once installed them: uv, or the prefix's own pip, which must be whole by then.
        A copy that the cache holds damaged is evicted and fetched anew. Nothing in the prefix is changed.
        """
        found = Supplied()
        wanted = [each for each in wanted if self._by_pip(each) is with_pip]
        if not wanted:
            return found
        bundled_pip(self.work)
        beside = self.beside / ("pip" if with_pip else "uv")
        artefacts: dict[str, Artefact] = {}
        for name in _owners(wanted):
            told = self._artefact(name)
            if isinstance(told, Lost):
                found.lost.append(told)
            else:
                artefacts[name] = told
        wrong = self._round(wanted, artefacts, beside / "1", found)
        wrong = self._guilty(wanted, wrong, artefacts, beside, found)
        if wrong:
            # What lies in the cache was changed since it was unpacked there.
            for name, paths in wrong.items():
                text = f"the cache held a damaged copy of `{name}` ({paths[0]}): it is taken out and fetched anew"
                self.shop.tell(Note(text=text, level="warning"))
                self.work.known.forget(artefacts[name].sha256 or "")
            self.work.uv.evict(tuple(wrong))
            found.evicted += sorted(wrong)
            missing = [each for each in wanted if each.path not in found.ready]
            fresh = Supplied()
            still = self._round(missing, {name: artefacts[name] for name in wrong}, beside / "2", fresh)
            for name, paths in still.items():
                fresh.lost.append(Lost(subject=name, why=f"its wheel does not hold what was recorded ({paths[0]})"))
            found.ready |= fresh.ready
            # What only the cache lacks now, since another's copy of it was right, is no loss here.
            needed = {owner for each in missing for owner in each.owners}
            found.lost += [each for each in fresh.lost if each.subject in needed]
        return found

    def _by_pip(self, wanted: Restoration) -> bool:
        item = self.whole.state.get(wanted.owners[0])
        return item is not None and item.installer == "pip"

    def _artefact(self, name: str) -> Artefact | Lost:
        """The wheel that was installed, or one of its version that may be the same."""
        item = self.whole.state.get(name)
        if item is None:
            return Lost(subject=name, why="it was not recorded which version it was")
        try:
            if item.sha256 is not None:
                return self.work.router.hashed(self.work.router.locked(item))
            artefact = self.work.router.find(item.name, item.version)
            if artefact.wheel:
                return self.work.router.hashed(artefact)
        except EnvforgeError as error:
            return Lost(subject=name, why=error.message)
        return Lost(subject=name, why="no wheel of it is known")

    def _round(
        self, wanted: Iterable[Restoration], artefacts: Mapping[str, Artefact], folder: Path, found: Supplied
    ) -> dict[str, list[str]]:
        """Bring ``artefacts`` into ``folder``; what is right is ready then. Returns what is not: name -> paths."""
        there = self._install(artefacts, folder, found)
        owned: dict[str, list[Restoration]] = {}
        for each in wanted:
            owner = next((name for name in each.owners if name in there), None)
            if owner is not None:
                owned.setdefault(owner, []).append(each)
        files = [each for group in owned.values() for each in group]
        paths = {each.path for each in files}
        digests = hashing.digests(folder, paths)
        # The RECORD that was brought may have been written otherwise than the recorded one, where that still is.
        known: dict[str, str | None] = {}
        for root in (folder, self.kept, self.prefix):
            known |= {path: told for path, told in drifts.expected(root, self.whole, paths).items() if told}
        wrong: dict[str, list[str]] = {}
        for owner, group in owned.items():
            vouched = any(not (each.sha256 or known.get(each.path)) for each in group) and self._same(owner, folder)
            for each in group:
                expected = each.sha256 or known.get(each.path)
                actual = digests.get(each.path)
                if actual is not None and (actual == expected or (expected is None and vouched)):
                    found.ready[each.path] = (folder / each.path, actual)
                else:
                    for name in there.intersection(each.owners):
                        wrong.setdefault(name, []).append(each.path)
        return {owner: left for owner, paths in wrong.items() if (left := self._damaged(owner, paths, folder, found))}

    def _guilty(
        self,
        wanted: Iterable[Restoration],
        wrong: Mapping[str, list[str]],
        artefacts: Mapping[str, Artefact],
        beside: Path,
        found: Supplied,
    ) -> dict[str, list[str]]:
        """Those whose own copy is damaged: of ``wrong``, and of all that bring a path that others bring too.

        Which copy of that path came is chance: only each distribution alone can tell.
        """
        shared = {each.path: each.sha256 for each in wanted if len(each.owners) > 1}
        left = dict(wrong)
        for name in sorted({owner for each in wanted if each.path in shared for owner in each.owners} & set(artefacts)):
            folder = beside / f"alone-{name}"
            self._install({name: artefacts[name]}, folder, found)
            mine = {*wrong.get(name, ()), *shared}
            left[name] = [path for path in prefixes.damaged(folder, (name,)).get(name, ()) if path in mine]
            for path, sha256 in hashing.digests(folder, shared).items():
                if sha256 is not None and sha256 == shared[path]:
                    found.ready[path] = (folder / path, sha256)
        return {name: paths for name, paths in left.items() if paths}

    def _damaged(self, name: str, paths: list[str], folder: Path, found: Supplied) -> list[str]:
        """Those of ``paths`` that a damaged copy brought; the others the wheel never held so, and they are lost."""
        recorded, there = self.whole.state[name], prefixes.look(folder).state.get(name)
        damaged = prefixes.damaged(folder, (name,)).get(name, ())
        if there is None or (there.record != recorded.record and (damaged or not self._is_meant(recorded, there))):
            return paths
        other = [path for path in paths if path not in damaged]
        if other:
            found.lost.append(Lost(subject=name, why=f"its wheel never held what was recorded ({other[0]})"))
        return [path for path in paths if path in damaged]

    def _is_meant(self, recorded: Distribution, there: Distribution) -> bool:
        """Whether another RECORD is no sign of a damaged copy: nobody knows the wheel that was recorded, or it is the
        same and was only written otherwise by another installer or for another prefix.
        """
        return recorded.sha256 is None or (recorded.contents is not None and recorded.contents == there.contents)

    def _same(self, name: str, folder: Path) -> bool:
        """Whether the whole distribution has the recorded contents, by its RECORD, and its files are what that says."""
        recorded, there = self.whole.state[name], prefixes.look(folder).state.get(name)
        if there is None or recorded.contents is None or there.contents != recorded.contents:
            return False
        return not prefixes.damaged(folder, (name,))

    def _install(self, artefacts: Mapping[str, Artefact], folder: Path, found: Supplied) -> set[str]:
        """Bring all in one go; where that fails, one by one. Returns what is there."""
        try:
            self._bring(tuple(artefacts.values()), folder)
        except EnvforgeError as error:
            if len(artefacts) == 1:
                found.lost += [_lost(self.whole.state[name], error) for name in artefacts]
                return set()
        else:
            return set(artefacts)
        return {name for name in artefacts if self._install({name: artefacts[name]}, folder, found)}

    def _bring(self, artefacts: Sequence[Artefact], folder: Path) -> None:
        if not artefacts:
            return
        self.shop.tell(Working(what=f"fetching the files of {len(artefacts)} distributions"))
        engine = self.work.pip if folder.parent.name == "pip" else self.work.uv
        completed = engine.install(self.prefix, artefacts, self.work.scratch, self.log, beside=folder)
        self.shop.tell(Working(what=None))
        if not completed.ok:
            raise self.work.uv.failure(completed, "repair")


def _owners(wanted: Iterable[Restoration]) -> list[str]:
    return sorted({owner for each in wanted for owner in each.owners})


def _lost(item: Distribution, error: EnvforgeError) -> Lost:
    cause = f": {error.cause.strip().splitlines()[-1]}" if error.cause else ""
    return Lost(subject=item.name, why=f"{error.message}{cause}")
