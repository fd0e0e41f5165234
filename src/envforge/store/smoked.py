"""What the last smoke checks of a generation came to, per card: ``records/NAME/G/smoke.json``."""

from __future__ import annotations

from typing import Any

from envforge.model import wire
from envforge.model.smoked import Kept, Smoked
from envforge.model.typed import checked

from . import spare
from .layout import Home

_FILE = "smoke.json"
_SCHEMA = 1


def write(home: Home, name: str, generation: int, entry: Smoked) -> None:
    """Remember it in place of what was known of the same card; where this user cannot write, nothing happens."""
    others = [each for each in read(home, name, generation) if each.card != entry.card]
    document = {"schema": _SCHEMA, "cards": [_card(each) for each in (entry, *others)]}
    spare.write(home, name, generation, _FILE, document)


def read(home: Home, name: str, generation: int) -> tuple[Smoked, ...]:
    """The newest first; empty where there was none, or what is kept cannot be understood."""
    document = spare.read(home, name, generation, _FILE)
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        return ()
    try:
        return tuple(_read_card(each) for each in document["cards"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _card(entry: Smoked) -> dict[str, Any]:
    return {
        "card": entry.card,
        "card_name": entry.card_name,
        "at": entry.at,
        "snapshot": entry.snapshot,
        "checks": [
            {
                "name": each.name,
                "ok": each.ok,
                "ending": each.ending,
                "skipped": each.skipped,
                "generated": wire.generated(each.generated) if each.generated is not None else None,
            }
            for each in entry.checks
        ],
    }


def _read_card(data: dict[str, Any]) -> Smoked:
    return checked(
        Smoked(
            card=data["card"],
            card_name=data["card_name"],
            at=data["at"],
            snapshot=data["snapshot"],
            checks=tuple(_read_check(each) for each in data["checks"]),
        )
    )


def _read_check(data: dict[str, Any]) -> Kept:
    generated = data["generated"]
    return checked(
        Kept(
            name=data["name"],
            ok=data["ok"],
            ending=data["ending"],
            skipped=data["skipped"],
            generated=wire.read_generated(generated) if generated is not None else None,
        )
    )
