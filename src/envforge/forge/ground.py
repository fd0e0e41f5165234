"""What an environment stands on before its first step: a Python, and with the backend conda the packages around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envforge.engines.channels import channels
from envforge.engines.conda import Conda, subdir
from envforge.engines.pages import write_atomically
from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.machine import InterpreterFacts, Machine
from envforge.model.profile import Action, Backend, Profile
from envforge.model.progress import Working
from envforge.model.repodata import depends, spec_name
from envforge.model.state import Distribution, Origin, State, distributions, package_key, packages, shown
from envforge.probe import interpreter, pythons, stubs
from envforge.probe import machine as machines
from envforge.probe import prefix as prefixes
from envforge.store.locking import share
from envforge.store.scratch import scratch
from envforge.system import environ
from envforge.system.http import certificates, proxies

from .shop import Shop

_PLAIN = re.compile(r"\d+\.\d+(\.\d+)?")
_OLDEST_GLIBC = "2.28"
_LINUX = "5.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """``facts``: of the Python that the environment has, or will have; ``python``: a base interpreter like it on this
    host, None where there is none.

    With the backend conda ``conda`` is its engine, ``state`` the packages before the first step and the distributions
    that they bring, ``metadata`` the METADATA of these as far as it is known.
    """

    facts: InterpreterFacts
    python: str | None
    conda: Conda | None = None
    state: State = field(default_factory=dict)
    metadata: Mapping[str, bytes] = field(default_factory=dict)


@contextmanager
def ground(
    shop: Shop,
    profile: Profile,
    machine: Machine | None = None,
    *,
    fetch: bool = False,
    base: State | None = None,
    lay_out: bool = True,
    shelf: Mapping[str, Stored] = MappingProxyType({}),
) -> Iterator[Ground]:
    """What ``profile`` stands on, on this host or on the saved ``machine``.

    With ``fetch`` the packages of the backend conda are fetched where the cache lacks them, so that their Python can
    run; without it that Python is assumed then, as it always is without ``lay_out``. ``base``: what a lock has before
    the first step, so that nothing is solved. ``shelf``: sha256 -> archive, of packages that were brought along.
    Raises EnvforgeError where no Python fits and none can be assumed, and as `Conda` does.
    """
    if profile.backend is Backend.VENV:
        facts, python = target(profile, machine)
        yield Ground(facts=facts, python=python)
        return
    with ExitStack() as stack:
        cache = shop.settings.cache
        stack.enter_context(share(cache))
        folder = stack.enter_context(scratch(cache / "scratch"))
        engine = engine_for(shop, profile, folder, machine, shelf)
        shop.tell(Working(what=f"solving the packages of {profile.name}"))
        what = f"the base of `{profile.name}`"
        wanted = packages(base) if base is not None else engine.solve(specs(profile), what=what)
        shop.tell(Working(what=None))
        version = _python(profile, wanted)
        here = machine is None or (machine.architecture, machine.glibc) == (environ.architecture(), environ.glibc())
        if lay_out and here and (fetch or not engine.uncached(wanted)):
            yield _tried(shop, engine, wanted, folder / "base", what)
        else:
            yield _assumed(engine, wanted, version, machine, here=here)


def target(profile: Profile, machine: Machine | None = None) -> tuple[InterpreterFacts, str | None]:
    """Facts of the Python that the profile names, and its path where this machine has it and is the one meant.

    Raises EnvforgeError where no Python fits and none can be assumed.
    """
    here = (environ.architecture(), environ.glibc())
    there = (machine.architecture, machine.glibc) if machine is not None else here
    plain = _PLAIN.fullmatch(profile.python)
    try:
        found = pythons.find(profile.python)
    except EnvforgeError:
        if not plain:
            raise
        return interpreter.assumed(profile.python, there[0], there[1] or _OLDEST_GLIBC), None
    if there == here:
        return interpreter.facts(found.path), found.path
    # A range is not known to be met elsewhere by another version than here: that one is assumed.
    return interpreter.assumed(profile.python if plain else found.version, there[0], there[1] or _OLDEST_GLIBC), None


def engine_for(
    shop: Shop,
    profile: Profile,
    folder: Path,
    machine: Machine | None = None,
    shelf: Mapping[str, Stored] = MappingProxyType({}),
) -> Conda:
    """The engine for the channels of ``profile``, with ``folder`` to work in; ``shelf`` as of `ground`."""
    settings = shop.settings
    host = machine or machines.look(shop.home.root, software=False)
    roots = settings.cache / "certificates.pem"
    write_atomically(roots, certificates().encode())
    return Conda(
        channels=channels(profile, settings),
        platform=subdir(host.architecture),
        virtual=virtual(host),
        cache=settings.cache / "conda",
        scratch=folder,
        proxies=proxies(settings.proxy),
        roots=roots,
        offline=settings.offline,
        copy=settings.link_mode == "copy",
        shelf=shelf,
    )


def virtual(host: Machine) -> tuple[tuple[str, str, str], ...]:
    """The virtual packages of a host: what conda packages may require of it, as (name, version, build)."""
    found = [
        ("__unix", "0", "0"),
        # Of which kernel no machine file tells; hardly a package asks.
        ("__linux", _LINUX, "0"),
        ("__archspec", "1", host.architecture),
        ("__glibc", host.glibc or _OLDEST_GLIBC, "0"),
    ]
    return (*found, ("__cuda", host.cuda, "0")) if host.cuda else tuple(found)


def specs(profile: Profile, steps: int = 0) -> tuple[str, ...]:
    """The match specs that hold after the first ``steps`` steps: of a package those of the last list that names it, but
    the profile's `python` always.
    """
    wanted = profile.python
    if re.fullmatch(r"\d+\.\d+", wanted):
        wanted = f"{wanted}.*"
    asked: dict[str, list[str]] = {}
    for each in (profile.conda.packages, *_of_steps(profile, steps)):
        named: dict[str, list[str]] = {}
        for spec in each:
            named.setdefault(spec_name(spec), []).append(spec)
        asked |= named
    return tuple(dict.fromkeys((f"python {wanted.replace(' ', '')}", *chain.from_iterable(asked.values()))))


def _of_steps(profile: Profile, steps: int) -> Iterator[tuple[str, ...]]:
    return (step.arguments for step in profile.steps[:steps] if step.action is Action.CONDA)


def _python(profile: Profile, wanted: State) -> str:
    found = wanted.get(package_key("python"))
    if found is None:
        raise EnvforgeError(
            "python-not-found", f"the channels of `{profile.name}` have no package `python` that fits its specs"
        )
    return found.version


def _tried(shop: Shop, engine: Conda, wanted: State, prefix: Path, what: str) -> Ground:
    """The base as it is, laid out for this command only: its Python is asked, and builds what must be built."""
    shop.tell(Working(what=f"laying out {what.replace('`', '')}"))
    engine.install(prefix, wanted, what=what)
    found = prefixes.look(prefix)
    shop.tell(Working(what=None))
    python = str(prefix / "bin" / "python")
    try:
        facts, base = interpreter.facts(python), str(interpreter.ask(python)["base"])
    except EnvforgeError as error:
        version = wanted[package_key("python")].version
        raise EnvforgeError(
            "python-broken",
            f"the Python {version} that {what} brings does not work on this machine",
            cause=error.cause or error.message,
            hint="ask for another build or version of it: `python` in the profile, or a match spec in `conda.packages`",
        ) from error
    return Ground(
        facts=facts,
        python=base,
        conda=engine,
        state={**wanted, **distributions(found.state)},
        metadata=stubs.metadata(prefix),
    )


def _assumed(engine: Conda, wanted: State, version: str, machine: Machine | None, *, here: bool) -> Ground:
    architecture = machine.architecture if machine is not None else environ.architecture()
    glibc = (machine.glibc if machine is not None else environ.glibc()) or _OLDEST_GLIBC
    try:
        python = pythons.find(".".join(version.split(".")[:2])).path if here else None
    except EnvforgeError:
        python = None
    facts = interpreter.assumed(version, architecture, glibc)
    return Ground(facts=facts, python=python, conda=engine, state={**wanted, **assumed(wanted.values())})


def assumed(items: Iterable[Distribution]) -> State:
    """The distributions that conda packages bring, as far as their names tell."""
    found = {}
    for item in items:
        name = str(canonicalize_name(shown(item.name)))
        if _is_python_package(item):
            found[name] = Distribution(
                name=name,
                version=_normal(item.version),
                installer="conda",
                origin=Origin(kind="conda", package=shown(item.name)),
            )
    return found


def _is_python_package(item: Distribution) -> bool:
    """Whether it needs a Python, which what brings a distribution does."""
    if shown(item.name) in {"python", "python_abi", "pypy"}:
        return False
    return any(re.match(r"(python|python_abi)([ =<>!~]|$)", each) for each in depends(item))


def _normal(version: str) -> str:
    try:
        return str(Version(version))
    except InvalidVersion:
        return version
