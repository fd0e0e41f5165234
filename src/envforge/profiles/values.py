"""The kinds of text that profiles, recipes and configurations hold, each with its check.

Every check returns the text in its canonical form or raises a PydanticCustomError whose message is for the user.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from envforge.model.finding import FINDING_IDS
from envforge.profiles.hints import meant, without_credentials

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_DISTRIBUTION = re.compile(r"^([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])$")
_PATTERN = re.compile(r"^[A-Za-z0-9*?\[][A-Za-z0-9*?\[\]!._-]*$")
_MODULE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_PYTHON = re.compile(r"3\.[0-9]{1,2}(\.[0-9]{1,3})?")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*")
# The name, and whatever may follow it; what follows is the solver's to read.
_MATCH_SPEC = re.compile(r"([^\s:]+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)(?P<rest>$|[\s=<>!~\[].*)", re.DOTALL)
# Folders are named so: no part begins with a dot.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
INDEX_SCHEMES = ("http", "https")
CHANNEL_SCHEMES = ("http", "https", "file")


def wrong(message: str) -> PydanticCustomError:
    """A mistake told in our own words; braces in it are no template."""
    return PydanticCustomError("envforge", "{message}", {"message": message})


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")


def name(text: str) -> str:
    if not re.fullmatch(NAME, text):
        message = f"invalid name `{text}`: letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
        raise wrong(message)
    return text


def requirement(text: str) -> str:
    """PEP 508. An address in it must be free of credentials."""
    try:
        parsed = Requirement(text)
    except InvalidRequirement as error:
        close = _respelt(text)
        why = f": {_first_line(error)}" if close is None else f"; did you mean `{close}`?"
        message = f"invalid requirement `{without_credentials(text)}`{why}"
        raise wrong(message) from error
    if parsed.url:
        refuse_credentials(parsed.url)
    return text.strip()


def _respelt(text: str) -> str | None:
    """The requirement with `=>`, `=<` and a single `=` as they were meant; None where that is none either."""
    if "@" in text:
        return None
    close = re.sub(r"(?<![=<>!~])=(?![=<>])", "==", text.replace("=>", ">=").replace("=<", "<="))
    try:
        Requirement(close)
    except InvalidRequirement:
        return None
    return close if close != text else None


def held_requirement(text: str) -> str:
    """A requirement that says something about the version."""
    parsed = Requirement(requirement(text))
    if not parsed.specifier:
        message = f"`{text}` holds nothing: give a version specifier, such as `{parsed.name}<2`"
        raise wrong(message)
    return text.strip()


def specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        message = f"invalid version specifier `{text}`{_bare_version(text)}"
        raise wrong(message) from error
    if not text.strip():
        message = "an empty version specifier says nothing"
        raise wrong(message)
    return text.strip()


def _bare_version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        return ""
    return f"; did you mean `=={text.strip()}`?"


def version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion as error:
        message = f"invalid version `{text}`"
        raise wrong(message) from error


def python(text: str) -> str:
    """``3.10``, ``3.10.13``, or a PEP 440 specifier."""
    if _PYTHON.fullmatch(text):
        return text
    try:
        return specifier(text)
    except PydanticCustomError as error:
        message = f'invalid Python version `{text}`: give one such as `"3.10"`, `"3.10.13"` or `">=3.11"`'
        raise wrong(message) from error


def distribution(text: str) -> str:
    """A canonical name (PEP 503)."""
    if not _DISTRIBUTION.fullmatch(text):
        message = f"`{text}` is no name of a distribution"
        raise wrong(message)
    return canonicalize_name(text)


def pattern(text: str) -> str:
    """A canonical name, or a pattern of such with ``*``, ``?``, ``[...]``."""
    if not _PATTERN.fullmatch(text):
        message = f"`{text}` is no name or pattern of distributions"
        raise wrong(message)
    return re.sub(r"[-_.]+", "-", text).lower()


def module(text: str) -> str:
    if not _MODULE.fullmatch(text):
        message = f"`{text}` is no name of a module"
        raise wrong(message)
    return text


def variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        message = f"`{text}` is no name of a variable: letters, digits and `_`"
        raise wrong(message)
    return text


def model(text: str) -> str:
    """``NAME``, or ``OWNER/NAME`` as the hubs have it."""
    if not _MODEL.fullmatch(text):
        message = f"`{text}` is no name of a model, such as `Qwen/Qwen2-0.5B`"
        raise wrong(message)
    return text


def revision(text: str) -> str:
    if not re.fullmatch(NAME, text):
        message = f"`{text}` is no revision: give a branch, a tag or a commit, in letters, digits, `.`, `_` and `-`"
        raise wrong(message)
    return text


def model_path(text: str) -> str:
    """Absolute: what is recorded of a profile is read from another folder than its own."""
    if not filled(text).startswith(("/", "~/")):
        message = f"`{text}` is no absolute path, nor one that begins with `~/`"
        raise wrong(message)
    return text


def filled(text: str) -> str:
    if not text.strip():
        message = "must not be empty"
        raise wrong(message)
    if "\0" in text:
        message = "must not hold a null character"
        raise wrong(message)
    return text


def finding(text: str) -> str:
    if text not in FINDING_IDS:
        message = f"unknown finding `{text}`{meant(text, FINDING_IDS)}"
        raise wrong(message)
    return text


def index_url(text: str) -> str:
    return url(text, INDEX_SCHEMES)


def url(text: str, schemes: tuple[str, ...]) -> str:
    """An absolute address of one of these schemes, free of credentials and surrounding space."""
    stripped = text.strip()
    refuse_credentials(stripped)
    try:
        parts = urlsplit(stripped)
        complete = parts.scheme in schemes and bool(parts.hostname if parts.scheme != "file" else parts.path)
        _ = parts.port
    except ValueError:
        complete = False
    if not complete or re.search(r"\s", stripped):
        message = f"invalid URL `{text}`: expected one with {', '.join(f'`{scheme}://`' for scheme in schemes)}"
        raise wrong(message)
    return stripped


def channel(text: str) -> str:
    """A channel's name (``conda-forge``, ``conda-forge/label/dev``), or its URL."""
    if "://" in text:
        return url(text, CHANNEL_SCHEMES).rstrip("/")
    if not _CHANNEL.fullmatch(text.strip()):
        message = f"`{text}` is no channel: give a name such as `conda-forge`, or a URL"
        raise wrong(message)
    return text.strip()


def match_spec(text: str) -> str:
    """A package as conda's match specs name it, with or without a version and a build."""
    if not _MATCH_SPEC.fullmatch(filled(text).strip()):
        message = f"`{text}` is no match spec, such as `ffmpeg`, `numpy >=1.26,<2` or `conda-forge::blas=*=openblas`"
        raise wrong(message)
    return text.strip()


def model_or_path(text: str) -> str:
    """An absolute path, or a name as hubs have it (``owner/name``): what is relative leads elsewhere on every host."""
    stripped = filled(text).strip()
    if not stripped.startswith("/") and not _MODEL.fullmatch(stripped):
        message = f"`{text}` is no model: give an absolute path, or a hub's name such as `owner/name`"
        raise wrong(message)
    return stripped


def refuse_credentials(text: str) -> None:
    if without_credentials(text) != text:
        message = (
            f"credentials in the URL `{without_credentials(text)}`: "
            "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
        )
        raise wrong(message)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Filled = Annotated[str, AfterValidator(filled)]
Name = Annotated[str, AfterValidator(name), Field(json_schema_extra={"pattern": NAME})]
RequirementText = Annotated[str, AfterValidator(requirement)]
HeldRequirement = Annotated[str, AfterValidator(held_requirement)]
SpecifierText = Annotated[str, AfterValidator(specifier)]
VersionText = Annotated[str, AfterValidator(version)]
DistributionName = Annotated[str, AfterValidator(distribution)]
NamePattern = Annotated[str, AfterValidator(pattern)]
ModelName = Annotated[str, AfterValidator(model)]
RevisionText = Annotated[str, AfterValidator(revision)]
ModelPath = Annotated[str, AfterValidator(model_path)]
ModuleName = Annotated[str, AfterValidator(module)]
VariableName = Annotated[str, AfterValidator(variable)]
PythonText = Annotated[str, AfterValidator(python)]
ChannelText = Annotated[str, AfterValidator(channel)]
MatchSpecText = Annotated[str, AfterValidator(match_spec)]
ModelText = Annotated[str, AfterValidator(model_or_path)]
IndexUrl = Annotated[str, AfterValidator(index_url)]
FindingId = Annotated[
    str, AfterValidator(finding), WithJsonSchema({"type": "string", "enum": sorted(FINDING_IDS)})
]  # fmt: skip
_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
Specifiers = Annotated[
    list[SpecifierText], Field(min_length=1), BeforeValidator(_listed), WithJsonSchema(_ONE_OR_MORE)
]  # fmt: skip
