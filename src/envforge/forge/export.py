"""`export`: an environment as a file of another tool, with what that cannot carry."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envforge.engines.built import BuiltStore
from envforge.engines.channels import Channel, channels
from envforge.engines.origins import Routes, credentials, routes
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.export import (
    FOR_A_COMMAND,
    FOR_CONDA,
    FORMATS,
    INTO_A_FOLDER,
    Rendered,
    Subject,
    built,
    installable,
)
from envforge.model.losses import ACTIVATION, BINDING, BUILT, HASHES, NO_DEPS, PIP, PYTHON, losses
from envforge.model.profile import Backend, Profile
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.model.state import State
from envforge.model.views import ExportView
from envforge.store import pylock, snapshots

from . import restoring
from .bench import default_index
from .path import in_use
from .shop import Shop
from .writing import write, write_all

_ACTIVATION = "etc/conda/activate.d/"

Renderers = Mapping[str, Callable[[Subject], Rendered]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be exported. ``output``: a file or folder; ``-`` and None are stdout. ``command``: a profile's."""

    form: str
    command: str | None = None
    output: str | None = None

    @property
    def into(self) -> Path | None:
        return None if self.output in {None, "-"} else Path(self.output or "")


def export(
    shop: Shop, name: str, wish: Wish, *, renderers: Renderers, program: tuple[str, ...], several: bool
) -> Result[ExportView]:
    """The generation in use of ``name`` in the format of ``wish``; ``several``: the caller takes more than one text.

    Raises UsageError (no such format, command or environment), EnvforgeError ``not-restorable`` or ``not-writable``.
    """
    _check_form(wish, several=several)
    number = in_use(shop.home, name)
    held = restoring.lock(shop, name, number)
    _check_backend(wish.form, held.profile)
    _check_command(wish, held.profile)
    steps = len(held.states)
    accepted = max(snapshots.numbers(shop.home, name, number))
    if accepted > steps:
        text = f"what was accepted since ({name}/{number}.{accepted}) is not exported: no step made it"
        shop.tell(Note(text=text, level="warning"))
    settings = replace(shop.settings, substitutes=held.substitutes)
    ways = routes(held.profile, settings, default_index(settings, held.profile, settings.cache))
    asked = channels(held.profile, settings) if held.profile.backend is Backend.CONDA else ()
    before = snapshots.read(shop.home, name, number, 0).state
    last = snapshots.read(shop.home, name, number, steps, files=True)
    subject = Subject(
        environment=name,
        snapshot=last.id,
        profile=held.profile,
        python=held.python,
        states=(before, *held.states),
        indexes=_indexes(held.profile, held.substitutes, ways),
        private=_private(ways, asked),
        channels={channel.name: channel.place for channel in asked},
        kept=_kept(BuiltStore(settings.cache / "built", ""), held.states),
        contested=sum(len(row.owners) > 1 for row in last.files),
        activated=any(row.path.startswith(_ACTIVATION) for row in last.files),
        program=program,
        command=wish.command,
    )
    rendered = _pylock(subject, ways) if wish.form == "pylock" else renderers[wish.form](subject)
    for each in rendered.lost:
        shop.tell(Note(text=f"`{wish.form}` does not carry {each}", level="warning"))
    return Result(
        command="export",
        data=ExportView(
            environment=name,
            snapshot=last.id,
            format=wish.form,
            files=rendered.files,
            lost=rendered.lost,
            written=_written(wish, rendered.files),
        ),
    )


def _check_form(wish: Wish, *, several: bool) -> None:
    if wish.form not in FORMATS:
        close = difflib.get_close_matches(wish.form, FORMATS, n=3)
        meant = f"did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else None
        there = f"there are {', '.join(f'`{form}`' for form in FORMATS)}"
        raise UsageError("no-such-format", f"there is no format `{wish.form}`", hint=meant or there)
    if wish.form in INTO_A_FOLDER and wish.into is None and not several:
        raise UsageError(
            "usage",
            f"`{wish.form}` is a folder, which stdout cannot hold",
            hint="name it with `-o FOLDER`, or take the texts with `--json`",
        )


def _check_backend(form: str, profile: Profile) -> None:
    if form in FOR_CONDA and profile.backend is not Backend.CONDA:
        raise UsageError(
            "format-needs-conda",
            f"`{form}` is for the backend `conda`, and `{profile.name}` has the backend `{profile.backend.value}`",
            hint="`environment-yml` lets conda bring the Python, and pip the rest",
        )


def _check_command(wish: Wish, profile: Profile) -> None:
    names = ", ".join(f"`{name}`" for name in profile.commands)
    there = f"the profile has {names}" if names else f"`{profile.name}` has no `commands`"
    if wish.form not in FOR_A_COMMAND:
        if wish.command is not None:
            forms = ", ".join(f"`{form}`" for form in sorted(FOR_A_COMMAND))
            raise UsageError("usage", f"`--command` does not apply to `{wish.form}`", hint=f"it is for {forms}")
    elif wish.command is None:
        raise UsageError("usage", f"`{wish.form}` runs one command: name it with `--command`", hint=there)
    elif wish.command not in profile.commands:
        raise UsageError("usage", f"the profile has no command `{wish.command}`", hint=there)


def _indexes(profile: Profile, substitutes: Mapping[str, str], ways: Routes) -> Mapping[str, str | None]:
    """Name -> URL, None where the profile leaves it to the installer's own default, in order of priority."""
    urls = {index.name: index.url for index in profile.indexes}
    found: dict[str, str | None] = {}
    for index in profile.indexes:
        name = substitutes.get(index.name, index.name)
        url = urls.get(name)
        # Under another name the same index may come first.
        found[ways.origins[ways.of_index[index.name]].name] = pylock.bare(url) if url is not None else None
    return found


def _private(ways: Routes, asked: tuple[Channel, ...]) -> tuple[str, ...]:
    """Indexes and channels that are opened by a password."""
    indexes = (
        origin.name for origin in ways.origins.values() if any(credentials(origin, url) for url in origin.sources)
    )
    return (*indexes, *(each.name for each in asked if "://" in each.place and each.credentials(each.place)))


def _kept(store: BuiltStore, states: Iterable[State]) -> Mapping[str, str]:
    found = {}
    for item in {item.sha256: item for state in states for item in state.values()}.values():
        own = store.by_hash(item.sha256 or "") if built(item) else None
        if own is not None:
            found[own.sha256] = str(store.path(own.sha256, own.file))
    return found


def _pylock(subject: Subject, ways: Routes) -> Rendered:
    """The end of the lock as PEP 751 has it, for whoever reads that."""
    state = {name: pylock.portable(item) for name, item in subject.final.items() if installable(item)}
    urls = {origin.name: origin.url for origin in ways.origins.values()}
    text = pylock.render(state, python=subject.python, indexes=urls, built={})
    carried = {PYTHON, HASHES, BINDING, NO_DEPS, PIP, BUILT, ACTIVATION}
    return Rendered(files={"pylock.toml": text}, lost=losses(subject, carried))


def _written(wish: Wish, files: Mapping[str, str]) -> tuple[str, ...]:
    if wish.into is None:
        return ()
    if wish.form in INTO_A_FOLDER:
        return write_all(wish.into, files)
    if wish.into.is_dir():
        raise EnvforgeError(
            "not-writable", f"`{wish.into}` cannot be written", cause="it is a folder", hint="name a file in it"
        )
    return (write(wish.into, next(iter(files.values()))),)
