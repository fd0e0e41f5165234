"""Profiles by name or path, as recorded, and all of them with the cards that they fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envforge.model.errors import EnvforgeError, InvalidFileError, UsageError
from envforge.model.machine import Machine
from envforge.model.profile import Action, Backend, Conda, Profile
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.model.views import Fit, ProfileEntry, ProfilesView, needs
from envforge.profiles import loader, lookup
from envforge.store import profiles as store
from envforge.store.atomic import corrupt, newer
from envforge.store.layout import Home

from .shop import Shop


def find(shop: Shop, reference: str, *, backend: str | None = None) -> Profile:
    """The profile that a name or a path means, and tell its path; ``backend`` replaces the profile's own.

    Raises UsageError: not found, hidden by a foreign one, invalid, or a backend that does not exist.
    """
    profile = named(reference)
    shop.tell(Note(text=f"profile {profile.source}"))
    if backend is None:
        return profile
    if backend not in set(Backend):
        raise UsageError("usage", f"there is no backend `{backend}`", hint="`venv` or `conda`")
    return with_backend(profile, Backend(backend))


def with_backend(profile: Profile, backend: Backend) -> Profile:
    """``profile`` for another backend than its file says. Raises UsageError where its steps need that of the file."""
    if profile.backend is backend:
        return profile
    steps = ", ".join(f"`{step.name}`" for step in profile.steps if step.action is Action.CONDA)
    if backend is Backend.VENV and (steps or profile.conda.packages):
        raise UsageError(
            "needs-conda",
            f"`{profile.name}` cannot be built as a venv: "
            + (f"{steps} install conda packages" if steps else "it lists conda packages"),
            hint="leave out `--backend venv`",
        )
    from envforge.profiles.build import dump  # noqa: PLC0415 - only who replaces part of a profile writes one

    changed = replace(profile, backend=backend, conda=Conda(), overridden=True)
    return replace(changed, text=dump(changed))


def named(reference: str) -> Profile:
    """The profile that a name or a path means; raises as `find` does."""
    return read(lookup.find(reference))


def read(path: Path) -> Profile:
    """The profile in a file; raises InvalidFileError with every mistake."""
    return loader.load(path)


def recorded(home: Home, name: str, generation: int) -> Profile:
    """The profile as it was built.

    Raises EnvforgeError ``record-not-found`` or ``corrupt-record``, UsageError ``newer-record``.
    """
    path, text = store.path(home, name, generation), store.text(home, name, generation)
    try:
        return loader.loads(text, str(path))
    except InvalidFileError as error:
        if loader.is_newer(text):
            raise newer(path, error.cause or error.message) from error
        # Nobody wrote this one: what is wrong with it is damage, and no mistake of the user's.
        raise corrupt(path, what="the profile", cause=error.cause or error.message) from error


def profiles(shop: Shop, *, machine: Machine | None = None) -> Result[ProfilesView]:
    """Every profile that a name can mean, and which cards of this machine, or of the saved ``machine``, it fits.

    One that cannot be read is listed with what is wrong.
    """
    from envforge.probe import machine as probe  # noqa: PLC0415 - who reads one profile need not look at the host

    host = machine or probe.look(shop.home.root, software=False)
    entries = tuple(_entry(path, host) for path in lookup.catalogue())
    data = ProfilesView(profiles=entries, machine=host.hostname, gpus_status=host.gpus_status)
    return Result(command="profiles", data=data)


def _entry(path: Path, host: Machine) -> ProfileEntry:
    from envforge.profiles import matching  # noqa: PLC0415 - as above

    origin = _origin(path)
    try:
        profile = named(path.stem)
    except EnvforgeError as error:
        problem = f"{error.message}\n{error.cause}" if error.cause else error.message
        return ProfileEntry(name=path.stem, source=str(path), origin=origin, fits=False, problem=problem)
    fit = matching.fits(profile, host)
    return ProfileEntry(
        name=path.stem,
        source=str(path),
        origin=origin,
        summary=profile.summary,
        needs=needs(profile.gpu),
        fits=fit.fits,
        reason="; ".join(fit.reasons) or None,
        cards=tuple(
            Fit(
                index=one.card.index,
                card=one.card.name,
                uuid=one.card.uuid,
                compute_capability=one.card.compute_capability,
                fits=one.fits,
                reason="; ".join(one.reasons) or None,
            )
            for one in fit.cards
        ),
    )


def _origin(path: Path) -> str:
    project, user, shipped = lookup.folders("profiles")
    # In a checkout of envforge the project's folder is the shipped one.
    return {project: "project", user: "user", shipped: "shipped"}[path.parent]
