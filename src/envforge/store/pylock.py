"""PEP 751 locks: the text of a ``pylock.toml`` that restores a state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from envforge.model.state import Distribution, Origin, State

_ARCHITECTURES = ("x86_64", "aarch64")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
# No parser that refuses what it finds odd: an odd URL must lose its secrets too.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<authority>[^/?#]*)(?P<path>[^?#]*)")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

Value = str | int | list["Value"] | dict[str, "Value"]


def render(state: State, *, python: str, indexes: Mapping[str, str | None], built: Mapping[str, str]) -> str:
    """The lock of ``state`` for Python ``python`` (``3.10`` or ``3.10.13``), in stable order.

    ``indexes``: name -> URL or None where it is not known; credentials in it are left out. ``built``: sha256 of a
    wheel -> where it lies (a path or ``file:`` URL). A distribution whose file is not known cannot be restored: it is
    named under ``tool.envforge.unlocked``. A file whose address is neither known nor built is expected beside the lock.
    """
    everything = [state[name] for name in sorted(state)]
    locked = [dist for dist in everything if _is_known(dist)]
    unlocked = [f"{dist.name}=={dist.version}" for dist in everything if not _is_known(dist)]
    parts = [table(head(locked, python))]
    if locked:
        parts.extend("[[packages]]\n" + table(package(dist, indexes, built)) for dist in locked)
    else:
        parts[0] += "packages = []\n"
    if unlocked:
        parts.append("[tool.envforge]\n" + table({"unlocked": [*unlocked]}))
    return "\n".join(parts)


def head(locked: Sequence[Distribution], python: str) -> dict[str, Value]:
    """What a lock of these files says of itself."""
    minor = ".".join(python.split(".")[:2])
    said: dict[str, Value] = {"lock-version": "1.0"}
    marker = _marker(locked)
    if marker:
        said["environments"] = [marker]
    return {**said, "requires-python": f"=={minor}.*", "created-by": "envforge"}


def _is_known(dist: Distribution) -> bool:
    return dist.file is not None and dist.sha256 is not None


def portable(dist: Distribution) -> Distribution:
    """Without the path of this machine that it was built from."""
    if dist.origin is None or dist.origin.kind != "path":
        return dist
    return replace(dist, origin=replace(dist.origin, url=None))


def _marker(locked: Iterable[Distribution]) -> str | None:
    """Where the files fit, as far as their names bind them to one architecture."""
    names = [dist.file or "" for dist in locked]
    bound = {word for word in _ARCHITECTURES for name in names if name.removesuffix(".whl").endswith(word)}
    if len(bound) != 1:
        return None
    return f"platform_machine == '{bound.pop()}' and sys_platform == 'linux'"


def package(
    dist: Distribution, indexes: Mapping[str, str | None], built: Mapping[str, str], *, named: bool = False
) -> dict[str, Value]:
    """One entry of ``packages``, see `render`; ``named``: also the profile's name for its index."""
    said: dict[str, Value] = {"name": dist.name, "version": dist.version}
    if dist.requires_python:
        said["requires-python"] = dist.requires_python
    address = indexes.get(dist.index) if dist.index is not None else None
    if address is not None and dist.origin is None and dist.sha256 not in built:
        said["index"] = bare(address)
    file = _file(dist, address, built)
    if dist.file is not None and dist.file.endswith(".whl"):
        said["wheels"] = [file]
    else:
        said["sdist"] = file
    own: dict[str, Value] = {"index": dist.index} if named and dist.index is not None else {}
    if dist.origin is not None:
        own["origin"] = _origin(dist.origin)
    if own:
        said["tool"] = {"envforge": own}
    return said


def _file(dist: Distribution, address: str | None, built: Mapping[str, str]) -> dict[str, Value]:
    name, sha256 = dist.file or "", dist.sha256 or ""
    file: dict[str, Value] = {"name": name}
    place = built.get(sha256)
    if place is not None and "://" not in place:
        file["path"] = place
    elif place is not None:
        file["url"] = place
    elif dist.url is not None and dist.origin is None:
        file["url"] = bare(dist.url)
    elif address is not None and dist.origin is None:
        file["url"] = f"{bare(address).rstrip('/')}/{dist.name}/{quote(name)}"
    else:
        file["path"] = name
    if dist.size is not None:
        file["size"] = dist.size
    file["hashes"] = {"sha256": sha256}
    return file


def _origin(origin: Origin) -> dict[str, Value]:
    url = None if origin.url is None else bare(origin.url)
    pairs = {"kind": origin.kind, "url": url, "sha256": origin.sha256, "commit": origin.commit}
    return {name: value for name, value in pairs.items() if value is not None}


def bare(url: str) -> str:
    """The URL without what could be a secret: user, password, query (signed addresses), fragment."""
    match = _URL.match(url)
    return f"{match['scheme']}{match['authority'].rpartition('@')[2]}{match['path']}" if match else url


def table(values: Mapping[str, Value]) -> str:
    """The entries of a TOML table, one a line."""
    return "".join(f"{_key(name)} = {inline(value)}\n" for name, value in values.items())


def inline(value: Value) -> str:
    """A value in one line of TOML."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return "{" + ", ".join(f"{_key(name)} = {inline(inner)}" for name, inner in value.items()) + "}"


def block(text: str) -> str:
    """A TOML string of several lines, which reads as it is."""
    lines = "".join(each if each in '\n"' else _character(each) for each in text)
    return '"""\n' + re.sub(r'"(?="|\Z)', r"\"", lines) + '"""'


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """A TOML basic string; what Unicode does not allow in a file (lone surrogates) becomes U+FFFD."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\u{code:04X}"
    return "\N{REPLACEMENT CHARACTER}" if 0xD800 <= code <= 0xDFFF else character
