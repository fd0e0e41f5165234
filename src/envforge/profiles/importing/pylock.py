"""A `pylock.toml` (PEP 751)."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from envforge.profiles.importing import addresses
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.pythons import python
from envforge.profiles.importing.requirement import requirement
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text, broken

_MAJOR = "1"
_WHERE = re.compile(r"\(at line (\d+), column (\d+)\)")


def parse(text: Text) -> dict[str, Any]:
    """The document. Raises InvalidFileError ``invalid-import`` with the place where it is broken."""
    try:
        return tomllib.loads(text.content.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _WHERE.search(str(error))
        line, column = (int(found[1]), int(found[2])) if found else (text.content.count("\n") + 1, 1)
        message = _WHERE.sub("", str(error)).strip()
        raise broken(text.place.at(line), f"TOML: {message[:1].lower()}{message[1:]}", column=column) from error
    except (RecursionError, ValueError) as error:
        raise broken(text.place, "TOML: it cannot be read") from error


def is_lock(document: Mapping[str, Any]) -> bool:
    return "lock-version" in document and "packages" in document


def file(sketch: Sketch, text: Text, document: Mapping[str, Any]) -> None:
    """Take over what is locked. Raises InvalidFileError ``invalid-import`` for what is no such lock."""
    version = document["lock-version"]
    if not isinstance(version, str) or version.partition(".")[0] != _MAJOR:
        raise broken(
            text.place.at(_line(text, "lock-version")), f"version `{version}` of the lock is not known: 1.x is"
        )
    packages = document["packages"]
    if not isinstance(packages, list) or not all(isinstance(item, dict) for item in packages):
        raise broken(text.place.at(_line(text, "packages")), "`packages` is no list of tables")
    since = sketch.noted
    ask = Ask(place=text.place, whole=True)
    _python(sketch, text, document)
    sketch.assume(
        text.place, "all that was locked, pinned, in one step: a lock does not say which of it were asked for"
    )
    for key in ("extras", "dependency-groups"):
        if document.get(key):
            sketch.lose(text.place.at(_line(text, key)), f"`{key}`: what is locked without them is taken")
    origins: dict[str, list[str]] = {}
    places = _places(text, len(packages))
    for place, item in zip(places, packages, strict=True):
        found = _package(sketch, place, item)
        if found is not None:
            ask.requirements.append(found)
            if isinstance(item.get("index"), str):
                origins.setdefault(item["index"], []).append(item["name"])
    _indexes(sketch, text, origins)
    if ask.requirements:
        sketch.lose(text.place, "the hashes: envforge records those of what it installs")
    sketch.install(ask, since)


def _python(sketch: Sketch, text: Text, document: Mapping[str, Any]) -> None:
    wanted = document.get("requires-python")
    if isinstance(wanted, str):
        place = text.place.at(_line(text, "requires-python"))
        sketch.wants_python(place, python(wanted), wanted)


def _package(sketch: Sketch, place: Place, item: Mapping[str, Any]) -> str | None:
    name, version = item.get("name"), item.get("version")
    if not isinstance(name, str):
        raise broken(place, "a locked package without a `name`")
    marker = item.get("marker")
    behind = ""
    if isinstance(marker, str) and marker.strip():
        if re.search(r"\b(extras|dependency_groups)\b", marker):
            sketch.lose(place, f"`{name}`: it is only for an extra or a dependency group")
            return None
        behind = f" ; {marker}"
    source = _source(sketch, place, name, item)
    if source is not None:
        return requirement(sketch, place, f"{name} @ {source}{behind}")
    if not isinstance(version, str):
        sketch.lose(place, f"`{name}`: the lock gives neither a version nor a source")
        return None
    return requirement(sketch, place, f"{name}=={version}{behind}")


def _source(sketch: Sketch, place: Place, name: str, item: Mapping[str, Any]) -> str | None:
    """The address of what comes from no index; None for what does."""
    vcs, directory, archive = (item.get(key) for key in ("vcs", "directory", "archive"))
    if isinstance(vcs, dict):
        address = vcs.get("url") or vcs.get("path") or ""
        revision = vcs.get("commit-id") or vcs.get("requested-revision")
        inside = f"#subdirectory={vcs['subdirectory']}" if vcs.get("subdirectory") else ""
        return f"{vcs.get('type', 'git')}+{address}{f'@{revision}' if revision else ''}{inside}"
    if isinstance(directory, dict):
        if directory.get("editable"):
            sketch.assume(place, f"`{name}` is installed as a wheel; later edits of the source do not count")
        return str(directory.get("path", "."))
    if isinstance(archive, dict):
        hashes = archive.get("hashes")
        sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
        return f"{archive.get('url') or archive.get('path') or ''}{f'#sha256={sha256}' if sha256 else ''}"
    return None


def _indexes(sketch: Sketch, text: Text, origins: Mapping[str, list[str]]) -> None:
    """The index that most came from is the default one, of every other the lock says what it serves."""
    bare = {url: sketch.address(text.place, url.rstrip("/"), "indexes") for url in origins}
    merged: Counter[str] = Counter()
    for url, names in origins.items():
        merged[bare[url]] += len(names)
    usual = next((url for url in merged if addresses.is_default(url)), None)
    if usual is None and merged:
        usual = max((url for url in merged if addresses.torch_index(url) is None), key=merged.__getitem__, default=None)
    for url, names in origins.items():
        if not addresses.is_index(bare[url]):
            sketch.lose(
                text.place, f"the index `{bare[url]}`: it is no whole address with `http://` or `https://`", "indexes"
            )
        elif bare[url] == usual:
            sketch.indexes.default(bare[url])
        else:
            sketch.indexes.serves(bare[url], names)


def _line(text: Text, key: str) -> int:
    """The line where ``key`` is given at the top; the first where it is not found."""
    pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    return next((number for number, line in enumerate(text.content.split("\n"), start=1) if pattern.match(line)), 1)


def _places(text: Text, count: int) -> list[Place]:
    """Where each package begins."""
    heads = [
        number
        for number, line in enumerate(text.content.split("\n"), start=1)
        if re.match(r"\s*\[\[\s*packages\s*\]\]", line)
    ]
    whole = _line(text, "packages")
    return [text.place.at(heads[position] if len(heads) == count else whole) for position in range(count)]
