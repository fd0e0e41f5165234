"""What a format of an export cannot carry, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .export import Subject, built, installable, unlockable
from .profile import Action
from .state import packages, shown

_NAMED = 8

PYTHON = "python"
HASHES = "hashes"
BINDING = "binding"
ORDER = "order"
RUNS = "runs"
VARIABLES = "variables"
SMOKE = "smoke"
NO_DEPS = "no-deps"
CONDA = "conda"
PIP = "pip"
BUILT = "built"
ACTIVATION = "activation"
"""What some formats carry and others do not. ``BUILT``: wheels that were built here, if they are laid beside it."""


def losses(subject: Subject, carried: Collection[str]) -> tuple[str, ...]:
    """What is there and is not ``carried``, and what no format carries."""
    return tuple(_losses(subject, carried))


def _losses(subject: Subject, carried: Collection[str]) -> Iterator[str]:
    final = subject.final
    yield from _contents(subject, carried)
    if HASHES not in carried:
        yield "the hashes of the files: another file of the same version would be taken"
    if NO_DEPS not in carried:
        yield "that nothing else is resolved: where two distributions contradict each other, the installer refuses"
    if BINDING not in carried and len({item.index for item in final.values() if item.index and installable(item)}) > 1:
        yield "which distribution comes from which index: a file of another is refused by its hash, if any"
    yield from _doings(subject, carried)
    unknown = [item.name for item in final.values() if unlockable(item)]
    if unknown:
        yield f"what a program put there, whose file nobody knows: {_names(unknown)}"
    if PIP in carried:
        yield from _built(subject, carried)
    yield from _places(subject)


def _contents(subject: Subject, carried: Collection[str]) -> Iterator[str]:
    """Kinds of things that are installed."""
    condas = sorted(map(shown, packages(subject.final)))
    if CONDA not in carried and condas:
        yield f"the conda packages, and what they bring: {_names(condas)}"
    ours = sorted(name for name, item in subject.final.items() if installable(item))
    if PIP not in carried and ours:
        yield f"what pip installs: {_names(ours)}"
    if PYTHON not in carried:
        yield f"the Python: it must be {subject.minor}"


def _doings(subject: Subject, carried: Collection[str]) -> Iterator[str]:
    """What is done, set or watched, besides what is installed."""
    profile = subject.profile
    runs = [step.name for step in profile.steps if step.action is Action.RUN]
    if ORDER not in carried and len(profile.steps) > 1:
        yield "the order of the steps"
    if RUNS not in carried and runs:
        yield f"what programs do: {_names(runs)}"
    if VARIABLES not in carried and profile.environment:
        yield f"the variables of the profile: {_names(profile.environment)}"
    if ACTIVATION not in carried and subject.activated:
        yield "what the packages' own scripts for `conda activate` set: activate the environment where that is needed"
    generating = [smoke.name for smoke in profile.smoke if smoke.generate is not None]
    if SMOKE not in carried and profile.smoke:
        yield "the smoke checks"
    elif generating:
        yield f"the smoke checks that generate with a model: {_names(generating)}"
    if profile.guards:
        yield "the guards: nothing watches what is installed later"


def _built(subject: Subject, carried: Collection[str]) -> Iterator[str]:
    # Where the steps are done one by one, what came and went before the end is needed, too.
    states = subject.states if ORDER in carried else (subject.final,)
    for item in {item.sha256: item for state in states for item in state.values()}.values():
        if not built(item) or not installable(item):
            continue
        if BUILT in carried:
            place = subject.kept.get(item.sha256 or "")
            yield f"`{item.name}` {item.version}, which was built here: lay `{item.file}` beside it" + (
                f" (it is kept as {place})" if place else ""
            )
        else:
            yield f"`{item.name}` {item.version}, which was built here: no address has it"


def _places(subject: Subject) -> Iterator[str]:
    if subject.contested:
        number = "one path" if subject.contested == 1 else f"{subject.contested} paths"
        yield f"which distribution wins {number} that more than one owns"
    if subject.private:
        yield f"the credentials of {_names(subject.private)}: give them to the installer, by netrc for instance"


def _names(names: Collection[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in list(names)[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
