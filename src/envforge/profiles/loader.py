"""A profile's file to a Profile: recipes and ``extends`` expanded, every mistake in one go."""

from __future__ import annotations

from pathlib import Path

from envforge.model.errors import Mistake, UsageError
from envforge.model.profile import Profile
from envforge.profiles import checks, lookup, mistakes
from envforge.profiles.build import build
from envforge.profiles.forms import ProfileForm
from envforge.profiles.recipes import Places, expand
from envforge.profiles.tree import Tree, YamlError, parse, read

_REPLACED_BY_NAME = ("indexes", "steps", "smoke", "models")
_REPLACED_BY_KEY = ("environment", "commands")
_ADDED = ("guards", "ignore", "releases")
_TOP = {info.alias or name for name, info in ProfileForm.model_fields.items()}


def load(path: Path, *, cwd: Path | None = None, config: Path | None = None) -> Profile:
    """The profile in the file ``path``; recipes and extended profiles are looked up from ``cwd`` and ``config``.

    Raises InvalidFileError (``invalid-profile``) with every mistake, UsageError if the file cannot be read.
    """
    try:
        tree = read(path)
    except YamlError as error:
        raise _invalid(str(path), list(error.mistakes)) from error
    return _profile(tree, Places(cwd=cwd, config=config))


def loads(text: str, source: str, *, cwd: Path | None = None, config: Path | None = None) -> Profile:
    """As `load`, from text; ``source`` is what mistakes and the profile call its file."""
    try:
        tree = parse(text.encode("utf-8", errors="surrogatepass"), source)
    except YamlError as error:
        raise _invalid(source, list(error.mistakes)) from error
    return _profile(tree, Places(cwd=cwd, config=config))


def is_newer(text: str) -> bool:
    """Whether a profile's text is written for a newer envforge."""
    try:
        return checks.newer(parse(text.encode("utf-8", errors="surrogatepass"), "")) is not None
    except YamlError:
        return False


def _profile(tree: Tree, places: Places) -> Profile:
    found: list[Mistake] = []
    whole = _expanded(tree, places, (Path(tree.path).resolve(),), found)
    found += checks.of_whole(whole)
    if found:
        raise _invalid(tree.path, found)
    return build(ProfileForm.model_validate(whole.plain()), source=tree.path)


def _invalid(path: str, found: list[Mistake]) -> UsageError:
    return mistakes.invalid("invalid-profile", f"`{path}`", found)


def _expanded(tree: Tree, places: Places, chain: tuple[Path, ...], found: list[Mistake]) -> Tree:
    """``tree`` with its recipes and what it extends in it; ``chain``: the files being read, outermost first."""
    too_new = checks.newer(tree)
    if too_new is not None:
        found.append(too_new)
        return tree.with_value({})
    found += mistakes.of_form(ProfileForm, tree)
    parts = expand(tree, places)
    found += parts.mistakes
    own = tree.with_value(
        {
            **{key: entry for key, entry in tree.mapping().items() if key in _TOP},
            "steps": tree.with_value(list(parts.steps)),
            "guards": tree.with_value(list(parts.guards)),
            "ignore": tree.with_value(list(parts.ignore)),
            "releases": tree.with_value(list(parts.releases)),
            "smoke": tree.with_value(list(parts.smoke)),
            "models": tree.with_value(list(parts.models)),
            "environment": tree.with_value(dict(parts.environment)),
        }
    )
    found += checks.of_file(own)
    base = _base(tree, places, chain, found)
    if base is None:
        return own
    own.mapping().pop("extends")
    return _merged(base, own)


def _base(tree: Tree, places: Places, chain: tuple[Path, ...], found: list[Mistake]) -> Tree | None:
    """The profile that this one extends, expanded; None if there is none, or a mistake says why not."""
    extends = tree.get("extends")
    if extends is None or not isinstance(extends.value, str):
        return None
    try:
        path = _extended(extends.value, Path(tree.path).parent, places)
        base = read(path)
    except YamlError as error:
        found += error.mistakes
        return None
    except UsageError as error:
        found.append(extends.mistake(error.message + (f" ({error.cause})" if error.cause else "")))
        return None
    if path.resolve() in chain:
        circle = " -> ".join(f"`{entry.name}`" for entry in (*chain, path))
        found.append(extends.mistake(f"`extends` goes in a circle: {circle}"))
        return None
    return _expanded(base, places, (*chain, path.resolve()), found)


def _extended(reference: str, folder: Path, places: Places) -> Path:
    """A path is relative to the file that says ``extends``, a name is looked up."""
    if "://" in reference:
        raise UsageError("unknown-profile", f"`{reference}` is a URL; a profile extends a name or a path")
    if "/" in reference or reference.endswith((".yaml", ".yml")):
        return folder / lookup.expanded(reference)
    path = lookup.by_name("profiles", reference, cwd=places.cwd, config=places.config)
    if path is None:
        raise lookup.unknown("profile", reference, cwd=places.cwd, config=places.config)
    return path


def _merged(base: Tree, own: Tree) -> Tree:
    """``own`` over ``base``: indexes, steps, smoke checks, models, variables, commands by name; the rest added."""
    value = {**base.mapping(), **own.mapping()}
    for key in _REPLACED_BY_NAME:
        value[key] = own.with_value(_by_name(base.items(key), own.items(key)))
    for key in _REPLACED_BY_KEY:
        value[key] = own.with_value({**base.entries(key), **own.entries(key)})
    for key in _ADDED:
        before = base.items(key)
        known = [entry.plain() for entry in before]
        value[key] = own.with_value(before + [entry for entry in own.items(key) if entry.plain() not in known])
    return own.with_value(value)


def _by_name(before: list[Tree], after: list[Tree]) -> list[Tree]:
    named = {name: entry for entry in after if (name := entry.string("name")) is not None}
    taken = {entry.string("name") for entry in before}
    kept = [named.get(entry.string("name") or "", entry) for entry in before]
    return kept + [entry for entry in after if entry.string("name") is None or entry.string("name") not in taken]
