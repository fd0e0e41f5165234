"""Values that were read from a file: whether their fields are what their annotations say."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import Field, fields
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")
_PLAIN: dict[str, type] = {"str": str, "int": int, "bool": bool}
_TEXTS = "tuple[str, ...]"


def checked(value: T) -> T:
    """The dataclass ``value``, once its texts, numbers, flags and tuples of texts are such; what else it holds is not
    looked at. Raises TypeError naming the first field that is not.
    """
    for name, kind, optional in _kinds(cast("Hashable", type(value))):
        found: Any = getattr(value, name)
        if found is None and optional:
            continue
        if type(found) is not kind or (kind is tuple and not _are_texts(found)):
            message = f"`{name}` is {found!r}"
            raise TypeError(message)
    return value


@cache
def _kinds(of: Any) -> tuple[tuple[str, type, bool], ...]:
    return tuple(kind for each in fields(of) if (kind := _kind(each)) is not None)


def _kind(each: Field[Any]) -> tuple[str, type, bool] | None:
    """Name, type and whether None will do, for the annotations that are simple enough."""
    text = str(each.type)
    plain = text.removesuffix(" | None")
    kind = tuple if plain == _TEXTS else _PLAIN.get(plain)
    return (each.name, kind, plain != text) if kind is not None else None


def _are_texts(values: Any) -> bool:
    return all(type(each) is str for each in values)
