"""What pydantic found, as mistakes at the place in the file and in our words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from envforge.model.errors import InvalidFileError, Mistake
from envforge.profiles.hints import closest, meant, shown
from envforge.profiles.tree import Tree

_EXPECTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


MAY_BE_NULL = {"extends", "gpu", "default"}


def of_form(form: type[BaseModel], tree: Tree) -> list[Mistake]:
    """Every mistake of ``tree`` against ``form``; none if it fits."""
    found: list[Mistake] = []
    try:
        form.model_validate(tree.plain())
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
        misspelt = {place for detail in details if (place := _meant_place(form, detail)) is not None}
        found = [_mistake(form, tree, detail) for detail in details if not _told(detail, misspelt)]
    told = {(mistake.line, mistake.column) for mistake in found}
    return found + [mistake for mistake in _nulls(tree) if (mistake.line, mistake.column) not in told]


def _nulls(tree: Tree) -> Iterator[Mistake]:
    """Keys without a value: most are a line that was not finished, and none means what leaving it out means."""
    for key, entry in tree.mapping().items():
        if entry.value is None and key not in MAY_BE_NULL:
            yield entry.mistake(f"`{key}` has no value: give one, or leave the key out")
        yield from _nulls(entry)
    for entry in tree.value if isinstance(tree.value, list) else []:
        yield from _nulls(entry)


def invalid(code: str, what: str, mistakes: Iterable[Mistake], *, hint: str | None = None) -> InvalidFileError:
    """All mistakes in one error, in the order of files and lines, none twice."""
    unique = tuple(sorted(set(mistakes)))
    count = "a mistake" if len(unique) == 1 else f"{len(unique)} mistakes"
    return InvalidFileError(code, f"{what} has {count}", mistakes=unique, hint=hint)


def _meant_place(form: type[BaseModel], detail: ErrorDetails) -> tuple[int | str, ...] | None:
    """Where the key belongs that an unknown one is a misspelling of; None for any other mistake."""
    if detail["type"] != "extra_forbidden":
        return None
    *holder, key = detail["loc"]
    close = closest(str(key), _keys(form, holder))
    return (*holder, close) if close is not None else None


def _told(detail: ErrorDetails, misspelt: Collection[tuple[int | str, ...]]) -> bool:
    """Whether what is missing is there under a wrong name, which is a mistake of its own."""
    return detail["type"] == "missing" and detail["loc"] in misspelt


def _mistake(form: type[BaseModel], tree: Tree, detail: ErrorDetails) -> Mistake:
    kind, location = detail["type"], detail["loc"]
    if kind in {"extra_forbidden", "missing"}:
        holder = _at(tree, location[:-1])
        key = str(location[-1])
        if kind == "missing":
            return holder.mistake(f"`{key}` is missing")
        known = _keys(form, location[:-1])
        return holder.mistake_at_key(key, f"unknown key `{key}`{meant(key, known)}")
    if location and location[-1] == "[key]":
        return _at(tree, location[:-2]).mistake_at_key(str(location[-2]), _message(detail, location))
    found = _at(tree, location)
    return found.mistake(_message(detail, location, found))


def _message(detail: ErrorDetails, location: Sequence[int | str], found: Tree | None = None) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in {"list_type", "string_type"} and "compute_capability" in location and _is_number(given):
        written = found.text if found is not None and found.text else str(given)
        return f'expected a version specifier, found the number `{written}`: write `"=={written}"`'
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {_found(given, found)}{_quoting(kind, given, location, found)}"
    if kind == "literal_error":
        return _choice(str(context["expected"]), given)
    fixed = {
        "envforge": context.get("message"),
        "too_short": "must not be empty",
        "greater_than": f"expected a number above {context.get('gt', 0):g}, found {_found(given, found)}",
        "greater_than_equal": f"expected at least {context.get('ge', 0):g}, found {_found(given, found)}",
        "finite_number": f"expected a number, found {_found(given, found)}",
        "string_pattern_mismatch": f"invalid name `{given}`: it must match `{context.get('pattern')}`",
    }
    message = fixed.get(kind) or detail["msg"]
    return message[:1].lower() + message[1:] if kind not in fixed else message


def _choice(expected: str, given: Any) -> str:
    """``expected`` as pydantic puts it: ``'a', 'b' or 'c'``."""
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    close = meant(given, words) if isinstance(given, str) else ""
    *first, last = [f"`{word}`" for word in words]
    choices = f"{', '.join(first)} or {last}" if first else last
    return f"expected {choices}, found {shown(given)}{close}"


def _found(given: Any, found: Tree | None) -> str:
    """As `shown`, but a number the way it was written."""
    return f"the number `{found.text}`" if _is_number(given) and found and found.text else shown(given)


def _quoting(kind: str, given: Any, location: Sequence[int | str], found: Tree | None) -> str:
    if kind != "string_type" or found is None or found.text is None or given is None:
        return ""
    quoted = f': quote it, `"{found.text}"`'
    if isinstance(given, float) and location[-1] == "python":
        return f", which reads as {given}{quoted}"
    return quoted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at(tree: Tree, location: Sequence[int | str]) -> Tree:
    """The value at ``location``, or the nearest one around it."""
    for part in location:
        value = tree.value
        if isinstance(value, dict) and part in value:
            tree = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            tree = value[part]
        else:
            break
    return tree


def _keys(form: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """The keys that the mapping at ``location`` may have."""
    for part in location:
        field = {info.alias or name: info for name, info in form.model_fields.items()}.get(str(part))
        inner = next(_forms(field.annotation), None) if field else None
        form = inner or form
    return [info.alias or name for name, info in form.model_fields.items()]


def _forms(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _forms(argument)
