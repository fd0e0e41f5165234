"""The channels of a profile, after substitutes and mirrors, and what opens them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envforge.model.profile import DEFAULT_CHANNEL, Profile
from envforge.model.settings import Settings

from .origins import ORIGIN, Origin, credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """``name`` as the profile has it; ``place``: a name that conda knows, or a URL; ``mirrors``: URLs asked instead, in
    order, ``origin`` among them being the channel itself.
    """

    name: str
    place: str
    mirrors: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Where to ask, in order; ``origin`` is the channel itself."""
        return self.mirrors or (ORIGIN,)

    def credentials(self, url: str) -> tuple[str, str] | None:
        """User and password for ``url``: as of an index of this name, or from netrc."""
        places = [self.place, *self.mirrors] if "://" in self.place else [url, *self.mirrors]
        origin = Origin(name=self.name, key="", url=places[0], sources=tuple(each for each in places if "://" in each))
        return credentials(origin, url)


def channels(profile: Profile, settings: Settings) -> tuple[Channel, ...]:
    """The first has the highest priority."""
    return tuple(
        Channel(name=name, place=_place(name, settings.substitutes), mirrors=_mirrors(name, settings))
        for name in profile.conda.channels or (DEFAULT_CHANNEL,)
    )


def _place(name: str, substitutes: Mapping[str, str]) -> str:
    return substitutes.get(name, name)


def _mirrors(name: str, settings: Settings) -> tuple[str, ...]:
    found = settings.mirrors.get(_place(name, settings.substitutes), ())
    return () if found == (ORIGIN,) else found
