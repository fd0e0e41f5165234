"""Files of conda packages laid out beside a prefix and proved to be the recorded ones, before any is put in place."""

from __future__ import annotations

from collections.abc import Sequence

from envforge.model.errors import EnvforgeError
from envforge.model.progress import Working
from envforge.model.repair import Lost, Restoration
from envforge.model.state import packages as packages_of
from envforge.model.state import shown
from envforge.probe import drift as drifts
from envforge.probe import hashing
from envforge.probe.conda_meta import MOVED

from . import packages
from .supply import Place, Supplied


class CondaSupply(Place):
    """Brings what conda packages hold."""

    __slots__ = ()

    def bring(self, wanted: Sequence[Restoration]) -> Supplied:
        """The files of ``wanted`` (source ``package``) that can be had exactly as they were recorded.

        A package that the cache holds damaged is fetched anew. Nothing in the prefix is changed.
        """
        found = Supplied()
        keys = sorted({owner for each in wanted for owner in each.owners if owner in self.whole.state})
        if not keys:
            return found
        folder = self.beside / "conda"
        self.shop.tell(Working(what=f"fetching the files of {len(keys)} conda packages"))
        try:
            state = packages.with_python({key: self.whole.state[key] for key in keys}, self.whole.state)
            if any(row.path.startswith(MOVED) for row in self.whole.files):
                # What makes way for another's file does so only beside it.
                state = packages_of(self.whole.state)
            engine = packages.engine(self.work)
            # Of what was adopted, the files name the place where it lies.
            named = self.prefix.readlink() if self.prefix.is_symlink() else self.prefix
            found.evicted += packages.whole(
                self.shop, engine, folder, state, what="the repair", named=named, log=self.log
            )
        except EnvforgeError as error:
            why = f"{error.message}{f': {error.cause}' if error.cause else ''}"
            found.lost += [Lost(subject=key, why=why) for key in keys]
            return found
        finally:
            self.shop.tell(Working(what=None))
        paths = {each.path for each in wanted}
        known: dict[str, str | None] = {}
        for root in (folder, self.kept, self.prefix):
            known |= {path: told for path, told in drifts.expected(root, self.whole, paths).items() if told}
        digests = hashing.digests(folder, paths)
        wrong: dict[str, str] = {}
        for each in wanted:
            actual, expected = digests.get(each.path), each.sha256 or known.get(each.path)
            if actual is not None and actual == expected:
                found.ready[each.path] = (folder / each.path, actual)
            else:
                wrong.setdefault(each.owners[0], each.path)
        found.lost += [
            Lost(subject=key, why=f"its package does not hold what was recorded of `{shown(key)}` ({path})")
            for key, path in sorted(wrong.items())
        ]
        return found
