"""A step `recipe: NAME` becomes what the recipe holds, with the profile's parameters filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from envforge.model.errors import Mistake, UsageError
from envforge.profiles import lookup, mistakes
from envforge.profiles.checks import newer
from envforge.profiles.forms import RecipeForm
from envforge.profiles.hints import meant
from envforge.profiles.tree import Tree, YamlError, read

_OF_CARDS = ("compute_capability", "essential")
_PARAMETER = re.compile(r"\$(\$?)\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where names are looked up: the working folder and the user's configuration folder."""

    cwd: Path | None = None
    config: Path | None = None


@dataclass(slots=True, kw_only=True)
class Parts:
    """What profiles and recipes share, gathered in order, and the mistakes met on the way."""

    steps: list[Tree] = field(default_factory=list)
    guards: list[Tree] = field(default_factory=list)
    ignore: list[Tree] = field(default_factory=list)
    releases: list[Tree] = field(default_factory=list)
    smoke: list[Tree] = field(default_factory=list)
    models: list[Tree] = field(default_factory=list)
    environment: dict[str, Tree] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)


def expand(profile: Tree, places: Places) -> Parts:
    """The parts of a profile with every recipe step replaced by the recipe's own parts.

    Guards, ignored findings, releases, smoke checks and models of the recipes come first, the profile's own after them;
    of variables the profile's win, and two recipes that disagree about one are a mistake.
    """
    parts = Parts()
    own = profile.entries("environment")
    for step in profile.items("steps"):
        if step.get("recipe") is None:
            parts.steps.append(step)
        else:
            _expand_step(step, places, parts, own)
    parts.guards += profile.items("guards")
    parts.ignore += profile.items("ignore")
    parts.releases += profile.items("releases")
    parts.smoke += profile.items("smoke")
    parts.models += profile.items("models")
    parts.environment |= own
    return parts


def _expand_step(step: Tree, places: Places, parts: Parts, own: Mapping[str, Tree]) -> None:
    for key in step.mapping():
        if key not in {"recipe", "with"}:
            message = f"`{key}` cannot stand beside `recipe`: its steps have their own"
            parts.mistakes.append(step.mistake_at_key(key, message))
    name = step.get("recipe")
    if name is None or not isinstance(name.value, str):
        return
    recipe = _recipe(name, places, parts.mistakes)
    if recipe is None:
        return
    values = _values(step, name, recipe, parts.mistakes)
    if values is None:
        return
    body = recipe.with_value({key: entry for key, entry in recipe.mapping().items() if key != "parameters"})
    filled = _fill(body, values, parts.mistakes)
    for entry in filled.items("steps"):
        if entry.get("recipe") is not None:
            parts.mistakes.append(entry.mistake_at_key("recipe", "a recipe cannot use another recipe"))
        elif isinstance(entry.value, dict):
            parts.steps.append(entry.with_value({**entry.value, "from": name}))
    parts.mistakes += mistakes.of_form(RecipeForm, recipe.with_value({**recipe.mapping(), **filled.mapping()}))
    parts.guards += filled.items("guards")
    parts.ignore += filled.items("ignore")
    parts.releases += [_of_cards(entry, name) for entry in filled.items("releases") if _tells_of_cards(entry)]
    parts.smoke += filled.items("smoke")
    parts.models += filled.items("models")
    for variable, value in filled.entries("environment").items():
        before = parts.environment.setdefault(variable, value)
        if before.value != value.value and variable not in own:
            message = f"recipe `{name.value}` and one before it set `{variable}` differently: set it in `environment`"
            parts.mistakes.append(name.mistake(message))


def _tells_of_cards(release: Tree) -> bool:
    return any(release.get(key) is not None for key in _OF_CARDS)


def _of_cards(release: Tree, name: Tree) -> Tree:
    """Of all that a recipe knows of a release what concerns cards, as a profile says it."""
    told = {key: entry for key, entry in release.mapping().items() if key in {"version", "reference", *_OF_CARDS}}
    return release.with_value({"name": name, **told})


def _recipe(name: Tree, places: Places, found: list[Mistake]) -> Tree | None:
    """The recipe's file as a tree; None, and a mistake, if there is none that can be read."""
    text = str(name.value)
    try:
        path = lookup.by_name("recipes", text, cwd=places.cwd, config=places.config)
        if path is None:
            raise lookup.unknown("recipe", text, cwd=places.cwd, config=places.config)
        recipe = read(path)
    except YamlError as error:
        found += error.mistakes
        return None
    except UsageError as error:
        found.append(name.mistake(f"{error.message} ({error.cause})"))
        return None
    too_new = newer(recipe)
    if too_new is not None:
        found.append(too_new)
        return None
    return recipe


def _values(step: Tree, name: Tree, recipe: Tree, found: list[Mistake]) -> dict[str, Tree] | None:
    """What each parameter stands for; None, and mistakes at the profile's place, if that is not clear."""
    declared, given = recipe.entries("parameters"), step.entries("with")
    before = len(found)
    holder = step.get("with")
    for key in given:
        if holder is not None and key not in declared:
            message = f"recipe `{name.value}` has no parameter `{key}`{meant(key, declared)}"
            found.append(holder.mistake_at_key(key, message))
    values: dict[str, Tree] = {}
    for key, declaration in declared.items():
        value = given.get(key) or declaration.get("default")
        if value is None or value.value is None:
            found.append(name.mistake(f"recipe `{name.value}` needs the parameter `{key}`: give it under `with`"))
        else:
            values[key] = value
    return values if len(found) == before else None


def _fill(tree: Tree, values: Mapping[str, Tree], found: list[Mistake]) -> Tree:
    """``tree`` with every ``${parameter}`` in its strings replaced; ``$${name}`` stands for ``${name}``."""
    if isinstance(tree.value, dict):
        return tree.with_value({key: _fill(entry, values, found) for key, entry in tree.value.items()})
    if isinstance(tree.value, list):
        return tree.with_value([_fill(entry, values, found) for entry in tree.value])
    if not isinstance(tree.value, str):
        return tree
    notes: list[str] = []

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        value = values.get(match[2])
        if value is None:
            close = meant(match[2], values) or f"; write `$${{{match[2]}}}` for the text itself"
            found.append(tree.mistake(f"unknown parameter `{match[2]}`{close}"))
            return match[0]
        if value.path != tree.path:
            notes.append(f" (`{match[2]}` is given in {value.path}:{value.line}:{value.column})")
        return str(value.value)

    return replace(tree, value=_PARAMETER.sub(one, tree.value), note="".join(notes))
