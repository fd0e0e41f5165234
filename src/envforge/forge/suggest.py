"""`suggest`: what distributions import without requiring it, and the `backfill` that would bring it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.model.finding import Severity
from envforge.model.imports import Imports, Modules
from envforge.model.progress import Working
from envforge.model.result import Result
from envforge.model.state import Distribution, State
from envforge.model.views import SuggestView
from envforge.probe import imports as probe
from envforge.probe.standard import standard
from envforge.probe.surroundings import system_site
from envforge.rules.backfill import backfill
from envforge.rules.context import requested_by
from envforge.rules.import_undeclared import import_undeclared
from envforge.rules.judge import lowered
from envforge.store import imports as kept
from envforge.store.locking import share
from envforge.store.scratch import scratch

from .looking import About, markers
from .path import current
from .profiles import recorded
from .shop import Shop

_RANK = {severity: rank for rank, severity in enumerate(Severity)}


def suggest(shop: Shop, name: str) -> Result[SuggestView]:
    """Read what every distribution of the generation in use imports; nothing of it is run, and nothing written to it.

    Of a distribution whose code was read before, here or in another environment, what was found then is taken. What was
    changed since it was installed is `audit`'s to tell. Raises UsageError ``no-such-environment``, EnvforgeError
    ``no-generation``, ``corrupt-record`` or ``imports-not-read``.
    """
    generation, prefix = current(shop.home, name)
    python = About(home=shop.home, name=name, generation=generation).snapshot().python
    profile = recorded(shop.home, name, generation)
    sources = probe.sources(prefix)
    of, read = _imports(shop, prefix, sources)
    modules = Modules(of=of, names=probe.present(prefix), standard=standard(python), open=system_site(prefix) is True)
    found = import_undeclared(modules, _state(sources), requested_by(profile.steps), markers(python))
    lower = (lowered(each, profile.ignore) for each in found)
    findings = tuple(sorted(lower, key=lambda each: (_RANK[each.severity], each.key)))
    return Result(
        command="suggest",
        data=SuggestView(
            environment=name,
            generation=generation,
            backfill=backfill(findings),
            distributions=len(sources),
            read=len(read),
            unread=tuple(sorted(path for imports in of.values() for path in imports.unread)),
        ),
        findings=findings,
    )


def _imports(
    shop: Shop, prefix: Path, sources: tuple[probe.Source, ...]
) -> tuple[Mapping[str, Imports], Collection[str]]:
    """Canonical name -> what it imports; and those whose code had to be read."""
    home = shop.home
    known = {each.name: kept.read(home, each.name, each.digest) for each in sources if each.digest is not None}
    of = {name: imports for name, imports in known.items() if imports is not None}
    wanted = [source for source in sources if source.name not in of]
    if not wanted:
        return of, ()
    shop.tell(Working(what=f"reading what {len(wanted)} distributions import"))
    try:
        with share(home.cache), scratch(home.cache / "scratch") as folder:
            found = probe.read(prefix, wanted, folder)
            for source in wanted:
                if source.digest is not None and found[source.name].lasting:
                    kept.write(home, source.name, source.digest, found[source.name].imports)
    except OSError as error:
        raise EnvforgeError(
            "imports-not-read",
            "what the distributions import cannot be read",
            cause=error.strerror or str(error),
            hint=f"it is read in child processes, with a folder in `{home.cache}`: see that it can be written",
        ) from error
    finally:
        shop.tell(Working(what=None))
    return of | {name: each.imports for name, each in found.items()}, found.keys()


def _state(sources: tuple[probe.Source, ...]) -> State:
    return {
        each.name: Distribution(name=each.name, version=each.info.version, requires=each.info.requires)
        for each in sources
    }
