"""Where profiles and recipes lie, and which one a name means.

A name is looked for in the working folder, then in the user's configuration folder, then among those shipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from envforge.model.errors import UsageError
from envforge.profiles.hints import meant

_ENDINGS = (".yaml", ".yml")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def config_folder() -> Path:
    """The user's configuration folder of envforge; it need not exist."""
    import platformdirs  # noqa: PLC0415 - only needed where the caller names no folder

    return platformdirs.user_config_path("envforge")


def shipped(kind: str) -> Path:
    """The folder of what ships with envforge; ``kind`` is ``profiles`` or ``recipes``.

    In an installed wheel it lies inside the package, in a checkout at the root.
    """
    package = Path(__file__).parent.parent
    inside = package / "_data" / kind
    return inside if inside.is_dir() else package.parent.parent / kind


def find(reference: str, *, cwd: Path | None = None, config: Path | None = None) -> Path:
    """The profile that ``reference`` means: a path (it holds ``/`` or ends in .yaml or .yml), or a name.

    ``cwd`` and ``config`` default to the working folder and the user's configuration folder. A file that merely bears
    the name, without an ending, is taken as a path only where no profile has that name: a stranger's
    checkout must not decide what a name means.

    Raises UsageError: ``unknown-profile``, or ``hidden-profile`` where one in ``./profiles/`` hides a shipped one.
    """
    cwd = cwd or _working_folder()
    if _is_path(reference):
        path = cwd / expanded(reference)
        if not exists(path):
            raise UsageError("unknown-profile", f"there is no profile at `{path}`")
        return path
    found = by_name("profiles", reference, cwd=cwd, config=config)
    if found is not None:
        return found
    if reference and _is_file(cwd / reference):
        return cwd / reference
    raise unknown("profile", reference, cwd=cwd, config=config)


def by_name(kind: str, name: str, *, cwd: Path | None = None, config: Path | None = None) -> Path | None:
    """The first file of that name among ``kind`` (profiles, recipes), or None.

    Raises UsageError (``hidden-profile``, ``hidden-recipe``) if one in the working folder differs from the shipped one.
    """
    if not _NAME.fullmatch(name):
        return None
    candidates = [path for folder in folders(kind, cwd=cwd, config=config) if (path := _in(folder, name))]
    local, own = (cwd or _working_folder()) / kind, _in(shipped(kind), name)
    if candidates and own and candidates[0].parent == local and not _same(candidates[0], own):
        word = kind.removesuffix("s")
        by_path = f"give its path, `./{kind}/{candidates[0].name}`, or rename it"
        raise UsageError(
            f"hidden-{word}",
            f"`{candidates[0]}` hides the shipped {word} `{name}` and differs from it",
            cause=f"a name must not run what a foreign folder holds; the shipped one is `{own}`",
            hint=by_path if word == "profile" else "rename it",
        )
    return candidates[0] if candidates else None


def catalogue(*, cwd: Path | None = None, config: Path | None = None) -> tuple[Path, ...]:
    """Every profile that a name can mean, in the order of lookup; of two with one name only the first."""
    found: dict[str, Path] = {}
    for folder in folders("profiles", cwd=cwd, config=config):
        for path in _listing(folder):
            found.setdefault(path.stem, path)
    return tuple(found.values())


def folders(kind: str, *, cwd: Path | None = None, config: Path | None = None) -> tuple[Path, ...]:
    """Where ``kind`` is looked for, in order."""
    return ((cwd or _working_folder()) / kind, (config or config_folder()) / kind, shipped(kind))


def unknown(word: str, name: str, *, cwd: Path | None = None, config: Path | None = None) -> UsageError:
    """``unknown-profile`` or ``unknown-recipe``, with close names and the folders that were looked through."""
    # In a checkout of envforge the working folder's profiles are those that ship with it.
    places = {folder.resolve(): folder for folder in reversed(folders(f"{word}s", cwd=cwd, config=config))}
    known = [path.stem for folder in places for path in _listing(folder)]
    beside = _in(cwd or _working_folder(), name) if word == "profile" and _NAME.fullmatch(name) else None
    hint = f"there are: {', '.join(sorted(set(known)))}" if known else None
    if beside is not None:
        hint = f"there is a file of that name in the working folder: give its path, `./{beside.name}`"
    return UsageError(
        f"unknown-{word}",
        f"there is no {word} `{name}`{'' if beside else meant(name, known)}",
        cause=f"looked in {', '.join(f'`{folder}`' for folder in reversed(places.values()))}",
        hint=hint,
    )


def expanded(text: str) -> Path:
    """A path with ``~`` replaced; one of a user whom this host does not know is taken literally."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _is_path(reference: str) -> bool:
    return "/" in reference or reference.endswith(_ENDINGS)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("no-working-folder", "the working folder is gone", hint="change to one that exists") from error


def _listing(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS and path.is_file())
    except OSError:
        return  # A folder that is absent or closed to us holds nothing for us.


def _in(folder: Path, name: str) -> Path | None:
    for ending in _ENDINGS:
        path = folder / f"{name}{ending}"
        if _is_file(path):
            return path
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Whether there is something; where that cannot be told, reading it will say why."""
    try:
        return path.exists()
    except OSError:
        return True


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other) or one.read_bytes() == other.read_bytes()
    except OSError:
        return False
