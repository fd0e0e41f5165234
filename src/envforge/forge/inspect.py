"""`inspect`: the compiled files of an environment or a wheel: for which GPUs, and what they lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envforge.model.errors import UsageError
from envforge.model.machine import Machine
from envforge.model.native import Compiled, Elf, Native
from envforge.model.profile import Profile
from envforge.model.progress import Note, Working
from envforge.model.result import Result
from envforge.model.state import Distribution, State, shown
from envforge.model.views import Inspected, InspectedFile, InspectView
from envforge.probe import compiled, wheel
from envforge.probe import prefix as prefixes
from envforge.probe.native import told
from envforge.rules import cards as capabilities
from envforge.rules.context import Context, Moment
from envforge.rules.judge import NATIVE, judge
from envforge.rules.wording import below_site
from envforge.store.scratch import scratch
from envforge.system import clock

from . import native as natives
from .foreign import found, keeper, names_a_path
from .looking import About
from .path import current, require
from .profiles import recorded
from .shop import Shop


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is inspected. ``kind``: environment, wheel or file."""

    name: str
    kind: str
    native: Native
    state: State
    profile: Profile


def inspect(shop: Shop, what: str, *, machine: Machine | None = None) -> Result[InspectView]:
    """Look at the environment, wheel, compiled file or prefix ``what``; nothing of it is run or loaded.

    Judged for the cards of ``machine`` (this one where None), and for those that the profile of an environment of this
    home names. Raises UsageError ``no-such-environment`` or ``not-an-environment``, EnvforgeError ``bad-wheel``.
    """
    started = clock.monotonic()
    shop.tell(Working(what=f"looking at {what}"))
    subject = _subject(shop, what)
    here = natives.cards(subject.profile, machine)
    shop.tell(Working(what=None))
    moment = Moment(step=None, state=subject.state, native=subject.native)
    context = Context(profile=subject.profile, moments=(moment,), markers={}, substitutes={}, cards=here)
    judged = sorted({*map(capabilities.card, here), *capabilities.admitted(subject.profile)})
    return Result(
        command="inspect",
        data=InspectView(
            subject=subject.name,
            kind=subject.kind,
            cards=tuple(map(capabilities.shown, judged)),
            distributions=tuple(_inspected(subject, judged)),
            seconds=clock.monotonic() - started,
        ),
        findings=judge(context, NATIVE),
    )


def _subject(shop: Shop, what: str) -> _Subject:
    path = Path(what)
    if path.is_file():
        return _wheel(shop, path) if path.suffix == ".whl" else _file(path)
    if not names_a_path(shop.home, what):
        generation, _ = current(shop.home, require(shop.home, what))
        return _kept(shop, what, generation)
    kept = keeper(shop.home, path)
    if kept is not None:
        shop.tell(Note(text=f"`{what}` is generation {kept[1]} of `{kept[0]}`"))
        return _kept(shop, *kept)
    prefix = found(path).prefix
    seen = prefixes.look(prefix)
    native = natives.look(shop.home, prefix, rows=seen.files, state=seen.state, digests={}, profile=None)
    return _Subject(name=str(prefix), kind="environment", native=native, state=seen.state, profile=_none(str(prefix)))


def _kept(shop: Shop, name: str, generation: int) -> _Subject:
    about = About(home=shop.home, name=name, generation=generation)
    snapshot, profile = about.snapshot(), recorded(shop.home, name, generation)
    looked = about.look(snapshot, deep=False)
    native = about.native(profile, snapshot, looked)
    return _Subject(name=name, kind="environment", native=native, state=looked.state, profile=profile)


def _wheel(shop: Shop, path: Path) -> _Subject:
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(
            "not-an-environment", f"`{path.name}` is no name of a wheel", cause=str(error), hint="keep the wheel's name"
        ) from error
    with scratch(shop.settings.cache / "scratch") as folder:
        objects = wheel.read(path, folder)
    state = {str(name): Distribution(name=str(name), version=str(version))}
    return _alone(path, "wheel", objects, state, str(name))


def _file(path: Path) -> _Subject:
    objects = compiled.read(path.parent, [path.name])
    if not objects:
        raise UsageError(
            "not-an-environment",
            f"`{path}` is no environment, no wheel and no compiled file",
            hint="name an environment, the folder of one, or a wheel",
        )
    return _alone(path, "file", objects, {}, None)


def _alone(path: Path, kind: str, objects: Mapping[str, Elf], state: State, owner: str | None) -> _Subject:
    """Of what lies in no environment nobody can tell what it would find there."""
    native = Native(objects=told(objects, dict.fromkeys(objects, owner)))
    return _Subject(name=str(path), kind=kind, native=native, state=state, profile=_none(path.name))


def _none(name: str) -> Profile:
    """In place of a profile, where nobody knows one: nothing is asked for, nothing ignored."""
    return Profile(name=name, source="", text="")


def _inspected(subject: _Subject, judged: Iterable[capabilities.Card]) -> Iterable[Inspected]:
    owned: dict[str | None, list[Compiled]] = {}
    for each in subject.native.objects:
        owned.setdefault(each.owner, []).append(each)
    for owner in sorted(owned, key=lambda name: (name is None, name or "")):
        objects = owned[owner]
        codes = {code for each in objects for code in each.code}
        item = subject.state.get(owner or "")
        yield Inspected(
            name=shown(owner) if owner is not None else None,
            version=item.version if item is not None else None,
            objects=len(objects),
            code=tuple(code.name for code in sorted(codes, key=lambda code: (code.kind, code.arch, code.variant))),
            fits=tuple(capabilities.shown(each) for each in judged if capabilities.fits(codes, each)),
            files=tuple(
                InspectedFile(
                    path=below_site(each.path), code=tuple(one.name for one in each.code), trouble=each.trouble
                )
                for each in objects
                if each.code or each.trouble
            ),
        )
