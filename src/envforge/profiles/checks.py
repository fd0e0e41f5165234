"""What the form of a single value cannot say: unique names, one action a step, indexes that exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from envforge.model.errors import Mistake
from envforge.model.profile import DEFAULT_INDEX, Backend, Hub
from envforge.profiles.forms import ACTIONS, GUARDS, SCHEMA, SMOKES, GuardForm, SmokeForm, StepForm
from envforge.profiles.hints import meant
from envforge.profiles.tree import Tree

_RESOLVING = {"install", "backfill", "pin"}
_OPTIONS = {
    "indexes": _RESOLVING,
    "constraints": _RESOLVING,
    "build_constraints": _RESOLVING,
    "no_build_isolation": _RESOLVING,
    "allow": {"install", "pin"},
    "upgrade": {"install"},
    "no_deps": {"install"},
}


def newer(tree: Tree) -> Mistake | None:
    """The mistake that the file is written for a newer envforge; nothing else in it can be judged then."""
    schema = tree.get("schema")
    if schema is None or not isinstance(schema.value, int) or isinstance(schema.value, bool) or schema.value <= SCHEMA:
        return None
    message = f"schema {schema.value} is newer than this envforge reads ({SCHEMA}): update envforge"
    return schema.mistake(message)


def of_file(tree: Tree) -> Iterator[Mistake]:
    """Mistakes of one profile whose recipes are expanded, before it is merged with the one that it extends."""
    for kind in ("indexes", "steps", "smoke", "models"):
        yield from _unique(kind, tree.items(kind))
    for index in tree.items("indexes"):
        name = index.string("name")
        if name is not None and name != DEFAULT_INDEX and "url" not in index.mapping():
            yield index.mistake(f"index `{name}` needs a `url`; only `{DEFAULT_INDEX}` needs none")
    for step in tree.items("steps"):
        yield from _step(step)
    for guard in tree.items("guards"):
        yield from _guard(guard)
    for smoke in tree.items("smoke"):
        yield from _smoke(smoke)
    for model in tree.items("models"):
        yield from _model(model)


def of_whole(tree: Tree) -> Iterator[Mistake]:
    """Mistakes that show only when everything is together."""
    names = {index.string("name") or "" for index in tree.items("indexes")} or {DEFAULT_INDEX}
    extends = tree.get("extends")
    incomplete = extends is not None and extends.value is not None  # What it extends was not found: told already.
    for step in [] if incomplete else tree.items("steps"):
        for index in step.items("indexes"):
            if isinstance(index.value, str) and index.value not in names:
                yield index.mistake(f"unknown index `{index.value}`{meant(index.value, names)}")
    if tree.string("backend") != Backend.CONDA.value:
        block = tree.get("conda")
        if block is not None:
            yield block.mistake("`conda` is only for `backend: conda`")
        for step in tree.items("steps"):
            if "conda" in step.mapping():
                yield step.mistake_at_key("conda", "a `conda` step is only for `backend: conda`")


def _unique(kind: str, entries: Iterable[Tree]) -> Iterator[Mistake]:
    word = {"indexes": "index", "steps": "step", "smoke": "smoke check", "models": "model"}[kind]
    seen: dict[str, Tree] = {}
    for entry in entries:
        name = entry.get("name")
        if name is None or not isinstance(name.value, str):
            continue
        first = seen.setdefault(name.value, name)
        if first is not name:
            yield name.mistake(f"duplicate {word} `{name.value}`, first given in {first.path}:{first.line}")


def _step(step: Tree) -> Iterator[Mistake]:
    keys = step.mapping()
    if not keys:
        return
    found = [key for key in ACTIONS if key in keys]
    if "name" not in keys:
        yield step.mistake("a step needs a `name`")
    if "with" in keys:
        yield step.mistake_at_key("with", "`with` is only for a step with `recipe`")
    yield from _exactly_one("step", "an action", step, found, names=ACTIONS, form=StepForm)
    if len(found) == 1:
        for option, actions in _OPTIONS.items():
            if option in keys and found[0] not in actions:
                listed = " or ".join(f"`{action}`" for action in ACTIONS if action in actions)
                yield step.mistake_at_key(option, f"`{option}` does not apply to `{found[0]}`, only to {listed}")


def _guard(guard: Tree) -> Iterator[Mistake]:
    keys = guard.mapping()
    if not keys:
        return
    found = [key for key in GUARDS if key in keys]
    yield from _exactly_one("guard", "a kind", guard, found, names=GUARDS, form=GuardForm)
    if "symbol" in keys and "library" not in keys:
        yield guard.mistake("a `symbol` guard needs the `library` that must define it")
    if "library" in keys and "symbol" not in keys:
        yield guard.mistake_at_key("library", "`library` is only for a guard with `symbol`")
    if "constrain" in keys and found and not {"keep", "hold"} & set(found):
        yield guard.mistake_at_key("constrain", "`constrain` is only for `keep` and `hold`")


def _smoke(smoke: Tree) -> Iterator[Mistake]:
    found = [key for key in SMOKES if key in smoke.mapping()]
    if smoke.mapping():
        yield from _exactly_one("smoke check", "a kind", smoke, found, names=SMOKES, form=SmokeForm)
    generate = smoke.get("generate")
    if generate is not None and generate.string("engine") == "vllm" and smoke.string("device") == "cpu":
        yield smoke.mistake_at_key("device", "`device: cpu` is only for the engine `transformers`: vLLM needs a card")


def _model(model: Tree) -> Iterator[Mistake]:
    hub, keys = model.string("from"), model.mapping()
    if hub == Hub.PATH.value:
        if "path" not in keys:
            yield model.mistake("a model `from: path` needs the `path` where it lies")
        if "revision" in keys:
            yield model.mistake_at_key("revision", "`revision` is only for a model from a hub")
    elif hub is not None and "path" in keys:
        yield model.mistake_at_key("path", "`path` is only for a model `from: path`")


def _exactly_one(
    word: str, what: str, entry: Tree, found: list[str], *, names: tuple[str, ...], form: type[BaseModel]
) -> Iterator[Mistake]:
    if len(found) > 1:
        listed = " and ".join(f"`{key}`" for key in found)
        article = what.rpartition(" ")[2]
        yield entry.mistake_at_key(found[1], f"a {word} has exactly one {article}, this one has {listed}")
    known = {info.alias or name for name, info in form.model_fields.items()}
    # With an unknown key in it, the kind is probably there and misspelt: that is told already.
    if not found and not set(entry.mapping()) - known:
        yield entry.mistake(f"a {word} needs {what}: one of {', '.join(f'`{key}`' for key in names)}")
