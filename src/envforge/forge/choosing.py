"""Which cards a command sees: chosen by words, or all that its profile is for; told to CUDA by variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.machine import Card, Machine, Slice
from envforge.model.profile import Profile
from envforge.model.progress import Note, Working
from envforge.probe import machine as machines
from envforge.profiles import matching
from envforge.system import clock

from .shop import Shop

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
_POLL = 1.0  # seconds
_EVERY = frozenset({"all", "none"})
_SHORTEST = 3  # digits of a name: `3090` may be one, `1` is an index even where no card has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One card; ``parts``: those of it that are meant, where it is in MIG mode."""

    card: Card
    parts: tuple[Slice, ...] = ()


def variables(
    shop: Shop, profile: Profile, before: Mapping[str, str], *, gpu: str | None, wait: float | None
) -> Mapping[str, str]:
    """What makes CUDA see the cards that ``gpu`` names (else all that ``profile`` is for) and no other.

    Where ``gpu`` is None and ``before`` has CUDA_VISIBLE_DEVICES, its user has chosen already: nothing is set. For
    ``wait`` seconds the cards may be absent. Raises UsageError ``usage``, EnvforgeError ``gpu-not-there``.
    """
    words = _words(gpu)
    if words == ("none",):
        return {VISIBLE: ""}
    chosen_before = not words and VISIBLE in before
    if chosen_before and wait is None:
        return {}
    host, choices = _look(shop, profile, words, wait)
    if chosen_before or (profile.gpu is None and not words):
        return {}
    _tell(shop, profile, host, choices, chosen=bool(words))
    return exported(choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What smoke checks see. ``why``: why there is no card for them, where ``choices`` is empty; None where any is.

    ``variables``: what makes CUDA see those cards; empty where everything may be seen.
    """

    choices: tuple[Choice, ...] = ()
    why: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_called(choice.card) for choice in self.choices)

    @property
    def first(self) -> str | None:
        """The UUID of the card, or of the part of one, that a program takes which asks for one."""
        if not self.choices:
            return None
        return next((part.uuid for part in self.choices[0].parts), self.choices[0].card.uuid)


def sight(shop: Shop, profile: Profile, before: Mapping[str, str], *, gpu: str | None) -> Sight:
    """The cards that ``gpu`` names, else those of ``before``'s CUDA_VISIBLE_DEVICES, else all that ``profile`` is for.

    Raises UsageError ``usage`` and EnvforgeError ``gpu-not-there`` for what ``gpu`` says, and for nothing else.
    """
    said = before[VISIBLE] or "none" if gpu is None and VISIBLE in before else gpu
    words = _words(said)
    if words == ("none",):
        return Sight(why=f"`{'--gpu none' if gpu is not None else VISIBLE}` hides every GPU", variables={VISIBLE: ""})
    host = machines.look(shop.home.root, software=False)
    try:
        choices = choose(profile, words, host)
    except EnvforgeError as error:
        if gpu is not None:
            raise
        return Sight(why=f"{VISIBLE}: {error.message}", variables={VISIBLE: ""})
    if choices:
        return Sight(choices=choices, variables=exported(choices))
    reasons = matching.fits(profile, host).reasons
    failed = f"GPUs: {host.gpus_status}" if host.gpus_status.startswith("failed") else "no GPU was found"
    return Sight(why="; ".join(reasons) or failed)


def seconds(text: str) -> float:
    """How long to wait. Raises UsageError ``invalid-flag`` where that is no number, or none to wait for."""
    if not re.fullmatch(r"\d{1,6}(\.\d+)?", text, re.ASCII):
        raise UsageError("invalid-flag", f"`--wait-gpu {text}` is no number of seconds", hint="as in `--wait-gpu 120`")
    return float(text)


def _words(gpu: str | None) -> tuple[str, ...]:
    """The words of a list; empty where there is none. Raises UsageError ``usage``."""
    if gpu is None:
        return ()
    words = tuple(word.strip() for word in gpu.split(","))
    if not all(words) or (len(words) > 1 and _EVERY.intersection(words)):
        raise UsageError(
            "usage",
            f"`--gpu {gpu}` is no list of GPUs",
            hint="indexes, UUIDs or names with commas between them, or one of `all` and `none`",
        )
    return words


def _look(shop: Shop, profile: Profile, words: Sequence[str], wait: float | None) -> tuple[Machine, tuple[Choice, ...]]:
    """The host, and the cards as `choose` finds them; again and again for ``wait`` seconds where they are absent."""
    last = clock.monotonic() + (wait or 0.0)
    while True:
        host = machines.look(shop.home.root, software=False)
        try:
            return host, choose(profile, words, host, strict=wait is not None)
        except UsageError:
            raise
        except EnvforgeError as error:
            if clock.monotonic() >= last:
                raise
            shop.tell(Working(what=f"waiting: {error.message}"))
        clock.sleep(min(_POLL, max(last - clock.monotonic(), 0.0)))


def choose(profile: Profile, words: Sequence[str], host: Machine, *, strict: bool = False) -> tuple[Choice, ...]:
    """The cards of ``host`` that ``words`` name, in their order, each once; without any those that ``profile`` is for.

    Where the profile decides, the choice may be empty or fall short of it, unless ``strict``. Raises EnvforgeError
    ``gpu-not-there`` where a card is not there, UsageError ``usage`` where a word may mean several.
    """
    fit = matching.fits(profile, host)
    if not words:
        if strict and not (fit.fits and host.gpus):
            raise _absent("no GPU for the profile is there", host, "; ".join(fit.reasons))
        memory = {each.card.uuid: matching.parts(profile, each.card) for each in fit.cards if each.fits}
        return tuple(Choice(card=card, parts=memory[card.uuid]) for card in host.gpus if card.uuid in memory)
    chosen: dict[str, Choice] = {}
    for word in words:
        found = [Choice(card=card, parts=card.slices) for card in host.gpus] if word == "all" else _named(word, host)
        if not found:
            raise _absent(f"there is no GPU `{word}`" if word != "all" else "there is no GPU", host)
        for each in found:
            known = chosen.get(each.card.uuid, each)
            parts = tuple(part for part in each.card.slices if part in {*known.parts, *each.parts})
            chosen[each.card.uuid] = Choice(card=each.card, parts=parts)
    whole = [each.card for each in chosen.values() if each.card.mig and not each.parts]
    if whole:
        raise _absent(f"GPU {whole[0].index} is in MIG mode, and none of its parts is known", host)
    return tuple(chosen.values())


def _named(word: str, host: Machine) -> list[Choice]:
    """What one word means: an index, the beginning of a UUID, else a part of a name."""
    cards = host.gpus
    if word.isdecimal() and any(card.index == int(word) for card in cards):
        return [Choice(card=card, parts=card.slices) for card in cards if card.index == int(word)]
    text = word.lower()
    if text.startswith(("gpu-", "mig-")):
        by_uuid = [Choice(card=card, parts=card.slices) for card in cards if card.uuid.lower().startswith(text)]
        by_uuid += [
            Choice(card=card, parts=(part,))
            for card in cards
            for part in card.slices
            if part.uuid.lower().startswith(text)
        ]
        if len(by_uuid) > 1:
            raise UsageError("usage", f"`{word}` is the beginning of several UUIDs", cause="\n".join(listed(cards)))
        return by_uuid
    if word.isdecimal() and len(word) < _SHORTEST:
        return []
    return [Choice(card=card, parts=card.slices) for card in cards if text in card.name.lower()]


def exported(choices: Sequence[Choice]) -> Mapping[str, str]:
    """The variables. Indexes, since vLLM and others parse integers; UUIDs only with a card in parts among them."""
    if not choices:
        return {}
    if any(choice.parts for choice in choices):
        devices = [part.uuid for choice in choices for part in choice.parts or (choice.card,)]
    else:
        devices = [str(choice.card.index) for choice in choices]
    return {ORDER: "PCI_BUS_ID", VISIBLE: ",".join(devices)}


def _tell(shop: Shop, profile: Profile, host: Machine, choices: Sequence[Choice], *, chosen: bool) -> None:
    """Say what a user may not expect: cards that do not fit, too few, none, or a driver that fails."""
    fit = matching.fits(profile, host)
    if host.gpus_status.startswith("failed") and host.gpus:
        shop.tell(Note(text=f"GPUs: {host.gpus_status}", level="warning"))
    if not chosen and not fit.fits:
        seen = "" if choices or not host.gpus else "; the command sees all that are there"
        text = f"this machine does not fit `{profile.name}`: {'; '.join(fit.reasons)}{seen}"
        shop.tell(Note(text=text, level="warning"))
    names = {choice.card.uuid for choice in choices}
    for each in fit.cards:
        if chosen and each.card.uuid in names and not each.fits:
            text = f"{_called(each.card)} does not fit `{profile.name}`: {'; '.join(each.reasons)}"
            shop.tell(Note(text=text, level="warning"))
    if choices:
        shop.tell(Note(text=f"visible: {', '.join(_called(each.card) for each in choices)}", level="verbose"))


def _absent(message: str, host: Machine, cause: str = "") -> EnvforgeError:
    failed = host.gpus_status if host.gpus_status.startswith("failed") else ""
    there = "\n".join(listed(host.gpus)) or ("" if failed else "no GPU is there")
    return EnvforgeError(
        "gpu-not-there",
        message,
        cause="\n".join(text for text in (cause, failed, there) if text),
        hint="`envforge machine` tells what is known of GPUs and driver; `--wait-gpu SECONDS` waits for them",
    )


def listed(cards: Iterable[Card]) -> tuple[str, ...]:
    """A line for each card, and one for each part."""
    lines = []
    for card in cards:
        lines.append(f"{_called(card)}  {card.uuid}")
        lines += [f"  MIG {part.profile or 'part'}  {part.uuid}" for part in card.slices]
    return tuple(lines)


def _called(card: Card) -> str:
    return f"GPU {card.index} {re.sub('^NVIDIA ', '', card.name)}"
