"""Whether a machine suits what is built, or was built, for cards: its driver, and what is here of what was."""

from __future__ import annotations

from envforge.model.finding import Finding, Severity
from envforge.model.machine import Machine
from envforge.model.profile import Profile
from envforge.model.snapshot import BuiltFor, Snapshot
from envforge.model.state import State
from envforge.probe import machine as machines
from envforge.profiles import matching
from envforge.rules.driver_too_old import built_for, driver_too_old
from envforge.rules.judge import lowered
from envforge.rules.machine_changed import machine_changed

from .shop import Shop


def driver_findings(
    profile: Profile, state: State, machine: Machine, severity: Severity = Severity.ERROR
) -> tuple[Finding, ...]:
    """A driver that is too old for the CUDA of ``state``, as ``profile`` wants it told."""
    return tuple(lowered(each, profile.ignore) for each in driver_too_old(state, machine, severity))


def host(shop: Shop, profile: Profile, state: State) -> Machine | None:
    """This machine, where cards matter: asking for them takes a tenth of a second."""
    matter = profile.gpu is not None or built_for(state) is not None
    return machines.look(shop.home.root, software=False) if matter else None


def findings(
    profile: Profile, state: State, machine: Machine | None, snapshot: Snapshot | None = None
) -> tuple[Finding, ...]:
    """What stands against ``machine``: the driver for what is installed, and what changed since ``snapshot``."""
    if machine is None:
        return ()
    changed = machine_changed(snapshot, machine) if snapshot is not None else ()
    return (
        *driver_findings(profile, state, machine),
        *(lowered(each, profile.ignore) for each in changed),
    )


def cards(profile: Profile, machine: Machine) -> tuple[BuiltFor, ...]:
    """The cards of ``machine`` that ``profile`` is for, as a snapshot keeps them; none without a ``gpu`` block."""
    if profile.gpu is None:
        return ()
    fitting = (each.card for each in matching.fits(profile, machine).cards if each.fits)
    return tuple(
        BuiltFor(uuid=card.uuid, name=card.name, compute_capability=card.compute_capability) for card in fitting
    )
