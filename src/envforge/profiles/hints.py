"""Words for mistakes: what was found, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_LONG = 40
_USER = re.compile(r"(?<![\w+.-])([a-z][a-z0-9+.-]*)://([^/\s]*)@", re.IGNORECASE)


def meant(word: str, candidates: Iterable[str]) -> str:
    """``; did you mean `x`?`` where one of the candidates is close, else nothing."""
    close = closest(word, candidates)
    return f"; did you mean `{close}`?" if close is not None else ""


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant, if one is close."""
    # Sorted, so that the answer does not depend on the order of a set.
    lowered = {candidate.lower(): candidate for candidate in sorted(candidates)}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def shown(value: Any) -> str:
    """A value of the wrong type, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean `{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number `{value}`"
    if isinstance(value, str):
        text = value if len(value) <= _LONG else value[:_LONG] + "..."
        return f"the string `{text}`"
    return "a list" if isinstance(value, list) else "a mapping"


def without_credentials(text: str) -> str:
    """The same text with the user part of every URL in it replaced by ``***``.

    The bare user of an ssh address, as in ``git+ssh://git@host/x``, is no secret and stays.
    """

    def hide(match: re.Match[str]) -> str:
        bare = match[1].lower().endswith("ssh") and ":" not in match[2]
        return match[0] if bare else f"{match[1]}://***@"

    return _USER.sub(hide, text)
