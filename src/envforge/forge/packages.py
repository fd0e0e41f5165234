"""Steps of kind conda: what one would change, and doing it without touching what pip brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envforge.engines.conda import Conda
from envforge.model.errors import EnvforgeError
from envforge.model.plan import Because
from envforge.model.profile import Profile, Step
from envforge.model.progress import Note
from envforge.model.repodata import depends, spec_name
from envforge.model.state import (
    Distribution,
    FileRow,
    State,
    bringer,
    distributions,
    is_package,
    package_key,
    packages,
    shown,
)
from envforge.probe import prefix as prefixes
from envforge.probe import stubs
from envforge.rules.diff import changes as differences

from .bench import Bench
from .ground import assumed, specs
from .shop import Shop


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a step of kind conda leaves: ``state``, and METADATA of the distributions that it brought, where known."""

    state: State
    metadata: Mapping[str, bytes]


def predict(bench: Bench, profile: Profile, step: Step, state: State) -> Brought:
    """What ``step`` leaves of ``state``. Raises EnvforgeError ``conda-would-overwrite``, and as `Conda.solve` does."""
    position = next(number for number, each in enumerate(profile.steps, 1) if each.name == step.name)
    wanted = engine(bench).solve(specs(profile, position), state, what=f"the step `{step.name}`")
    return after(bench, step, state, wanted)


def after(bench: Bench, step: Step, state: State, wanted: State) -> Brought:
    """What is installed once the packages are those of ``wanted``. Raises EnvforgeError ``conda-would-overwrite``."""
    conda = engine(bench)
    moved = differences(packages(state), wanted)
    gone = {change.name for change in moved if change.before is not None}
    entering = {change.name: change.after for change in moved if change.after is not None}
    brought, metadata = _brought(conda, step, entering, wanted, bench.scratch)
    _refuse(step, brought, state)
    left = {name: item for name, item in distributions(state).items() if bringer(item) not in gone}
    return Brought(state={**wanted, **left, **brought}, metadata=metadata)


def engine(bench: Bench) -> Conda:
    assert bench.conda is not None  # noqa: S101 - no profile of another backend has a step of kind conda
    return bench.conda


def causes(before: State, now: State, step: Step) -> Mapping[str, Because]:
    """Why packages changed: the step asks for them, or a package that it brought does."""
    changed = {change.name for change in differences(packages(before), packages(now)) if change.after is not None}
    asked = {package_key(spec_name(spec)): spec for spec in step.arguments}
    needed: dict[str, tuple[Distribution, str]] = {}
    for item in sorted(packages(now).values(), key=lambda item: (item.name not in changed, item.name)):
        for line in depends(item):
            needed.setdefault(package_key(spec_name(line)), (item, line))
    found = {}
    for name in changed:
        if name in asked:
            found[name] = Because(requirement=asked[name])
        elif name in needed:
            owner, line = needed[name]
            found[name] = Because(requirement=line, distribution=shown(owner.name), version=owner.version)
    return found


def apply(
    shop: Shop,
    bench: Bench,
    prefix: Path,
    step: Step,
    *,
    before: State,
    wanted: State,
    rows: Iterable[FileRow],
    asked: Sequence[str],
    log: Path,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Make ``prefix`` hold the packages of ``wanted``.

    ``rows``: its files now; ``asked``: all that was asked for so far.

    The new packages are first laid out beside it: nothing in the prefix is touched where one of their files is pip's,
    or where the cache holds a damaged copy that cannot be had anew. Raises EnvforgeError.
    """
    conda = engine(bench)
    what = f"the step `{step.name}`"
    entering = {
        change.name: change.after
        for change in differences(packages(before), packages(wanted))
        if change.after is not None
    }
    beside = bench.scratch / f"conda-{step.name}"
    whole(shop, conda, beside, with_python(entering, wanted), what=what, named=prefix, log=log, watch=watch)
    new = {row.path for row in prefixes.look(beside).files if not entering.keys().isdisjoint(row.owners)}
    leaving = {*entering, *(name for name in packages(before) if name not in wanted)}
    _refuse_paths(step, [row for row in rows if row.path in new and leaving.isdisjoint(row.owners)])
    conda.install(prefix, wanted, what=what, specs=asked, log=log)


def whole(
    shop: Shop,
    conda: Conda,
    prefix: Path,
    wanted: State,
    *,
    what: str,
    asked: Sequence[str] = (),
    named: Path | None = None,
    log: Path | None = None,
    watch: Callable[[int], None] | None = None,
) -> tuple[str, ...]:
    """Put ``wanted`` into ``prefix``; a package that came damaged out of the cache is fetched anew.

    Returns the keys of those that were. Raises EnvforgeError ``cache-damaged`` where that does not help.
    """
    conda.install(prefix, wanted, what=what, specs=asked, named=named, log=log, watch=watch)
    hit = prefixes.damaged(prefix, packages(wanted).keys())
    if not hit:
        return ()
    for name, paths in hit.items():
        text = f"the cache held a damaged copy of `{shown(name)}` ({paths[0]}): it is taken out and fetched anew"
        shop.tell(Note(text=text, level="warning"))
    conda.evict(wanted[name] for name in hit)
    conda.install(prefix, wanted, what=what, specs=asked, again=hit, named=named, log=log)
    left = prefixes.damaged(prefix, hit.keys())
    if left:
        names = ", ".join(f"`{shown(name)}`" for name in left)
        raise EnvforgeError(
            "cache-damaged",
            f"{names} cannot be installed as its package says, though it was fetched anew",
            hint=f"remove the cache `{conda.cache / 'pkgs'}` and run the command again",
        )
    return tuple(hit)


def _brought(
    conda: Conda, step: Step, entering: State, wanted: State, scratch: Path
) -> tuple[State, Mapping[str, bytes]]:
    """The distributions in packages: looked at where the cache has them all, else as far as their names tell."""
    if not entering or conda.uncached(with_python(entering, wanted)):
        return assumed(entering.values()), {}
    folder = scratch / f"look-{step.name}"
    conda.install(folder, with_python(entering, wanted), what=f"the step `{step.name}`")
    there = distributions(prefixes.look(folder).state)
    names = {shown(name) for name in entering}
    return (
        {name: item for name, item in there.items() if item.origin is not None and item.origin.package in names},
        stubs.metadata(folder),
    )


def unrun(prefix: Path, before: State, after: State) -> tuple[str, ...]:
    """Of the packages that are new in ``after``, the scripts that conda would have run once they were there."""
    new = (change.name for change in differences(packages(before), packages(after)) if change.after is not None)
    scripts = (f"bin/.{shown(name)}-post-link.sh" for name in new)
    return tuple(script for script in scripts if (prefix / script).exists())


def with_python(entering: State, wanted: State) -> State:
    """Where a package of Python modules is laid out depends on the Python."""
    python = package_key("python")
    return {**entering, python: wanted[python]} if python in wanted else entering


def _refuse(step: Step, brought: State, state: State) -> None:
    """A conda package that brings a distribution of pip's again would put its files over pip's."""
    hit = [
        name
        for name in brought
        if name in state and (state[name].origin is None or getattr(state[name].origin, "kind", None) != "conda")
    ]
    if hit:
        name = hit[0]
        raise _overwrite(
            step,
            f"`{name}` {brought[name].version} of conda over the `{name}` {state[name].version} that pip installed",
            name,
        )


def _refuse_paths(step: Step, hit: Iterable[FileRow]) -> None:
    """Refuse for the first of the files in the way that is no conda package's."""
    for row in hit:
        owner = next((each for each in row.owners if not is_package(each)), None)
        if owner is not None or not row.owners:
            whose = f"`{owner}`" if owner is not None else "nobody's"
            raise _overwrite(step, f"a file over `{row.path}`, which is {f'of {whose}' if owner else whose}", owner)


def _overwrite(step: Step, what: str, owner: str | None) -> EnvforgeError:
    return EnvforgeError(
        "conda-would-overwrite",
        f"the step `{step.name}` would put {what}",
        cause="conda asks nobody, and pip would still list what is gone",
        hint=f"put the step before the one that installs `{owner}`, or uninstall `{owner}` first"
        if owner is not None
        else "move the file away, or leave the step out",
    )
