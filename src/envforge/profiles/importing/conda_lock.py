"""A lock of conda-lock, version 1."""

from __future__ import annotations

from envforge.model.profile import Backend
from envforge.profiles.importing import addresses, explicit, specs
from envforge.profiles.importing.environment_yml import said
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.pythons import python
from envforge.profiles.importing.requirement import requirement
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text, broken
from envforge.profiles.tree import Tree

_VERSION = 1
_PLATFORMS = ("linux-64", "linux-aarch64")


def file(sketch: Sketch, text: Text, tree: Tree) -> None:
    """Take over what is locked for Linux. Raises InvalidFileError ``invalid-import`` for what is no such lock."""
    version = tree.get("version")
    if version is not None and (not isinstance(version.value, int) or version.value > _VERSION):
        shown = said(version) or "?"
        raise broken(text.place.at(version.line), f"version {shown} of the lock is newer than this envforge reads")
    sketch.backend, sketch.complete = Backend.CONDA, True
    metadata = tree.get("metadata") or tree
    for channel in metadata.items("channels"):
        address = channel.get("url")
        sketch.channel(text.place.at(channel.line), said(address) or "" if address else said(channel) or "")
    packages = [item for item in tree.items("package") if isinstance(item.value, dict)]
    platform = _platform(sketch, text, packages)
    _take(sketch, text, [item for item in packages if item.string("platform") == platform])


def _platform(sketch: Sketch, text: Text, packages: list[Tree]) -> str:
    """The platform that is taken: x86_64 where the lock has it."""
    there = {item.string("platform") or "" for item in packages}
    taken = next((platform for platform in _PLATFORMS if platform in there), None)
    if taken is None:
        raise broken(text.place, f"nothing is locked for {' or '.join(_PLATFORMS)}")
    others = sorted(there - {taken})
    if others:
        listed = ", ".join(f"`{platform}`" for platform in others)
        sketch.assume(text.place, f"what is locked for `{taken}` is taken, not that for {listed}", "conda")
    return taken


def _take(sketch: Sketch, text: Text, packages: list[Tree]) -> None:
    since = sketch.noted
    ask = Ask(place=text.place, whole=True)
    what = "all that was locked, pinned: a lock does not say which of it were asked for"
    sketch.assume(text.place, what, "conda")
    sources: dict[str, list[str]] = {}
    for item in packages:
        place = text.place.at(item.line)
        name, version = item.string("name"), item.get("version")
        shown = said(version) if version is not None else None
        if name is None or shown is None:
            raise broken(place, "a locked package without `name` or `version`", column=item.column)
        if _is_optional(item):
            sketch.lose(place, "packages of other categories than `main`", "conda")
        elif item.string("manager") == "pip":
            found = requirement(sketch, place, _pip(item, name, shown))
            if found is not None:
                ask.requirements.append(found)
                _note_source(sources, name, item.string("url") or "")
        elif name == "python":
            sketch.wants_python(place, python(shown), f"python {shown}")
        elif not name.startswith("__"):
            _conda(sketch, place, item, f"{name}={shown}")
    for url, names in sources.items():
        sketch.indexes.serves(url, names)
    if ask.requirements:
        sketch.lose(text.place, "the hashes of what pip installs: envforge records those of what it installs")
    sketch.install(ask, since)


def _is_optional(item: Tree) -> bool:
    categories = [entry.value for entry in item.items("categories")] or [item.string("category") or "main"]
    optional = item.get("optional")
    return "main" not in categories or (optional is not None and optional.value is True)


def _conda(sketch: Sketch, place: Place, item: Tree, spec: str) -> None:
    """The package with its build, which the name of its file holds."""
    found = explicit.archive(item.string("url") or "")
    specs.pinned(sketch, place, f"{spec}={found.build}" if found is not None else spec)


def _pip(item: Tree, name: str, version: str) -> str:
    source = item.get("source")
    direct = source.string("url") if source is not None else None
    url = direct or item.string("url") or ""
    return f"{name} @ {url}" if direct or url.startswith(("git+", "file:")) else f"{name}=={version}"


def _note_source(sources: dict[str, list[str]], name: str, url: str) -> None:
    """A file that lies at an index of PyTorch's layout says by which one it must be served."""
    folder = url.rpartition("/")[0]
    torch = addresses.torch_index(folder)
    if torch is not None and torch.build is not None:
        sources.setdefault(folder, []).append(name)


def is_lock(tree: Tree) -> bool:
    """Whether this is a lock, of whatever version."""
    package = tree.get("package")
    return (
        package is not None and isinstance(package.value, list) and bool({"metadata", "version"} & set(tree.mapping()))
    )
