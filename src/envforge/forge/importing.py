"""Another tool's file to a first profile."""

from __future__ import annotations

from pathlib import Path

from envforge.model.draft import Imported
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.progress import Note
from envforge.model.result import Result
from envforge.profiles import loader, lookup
from envforge.profiles.importing import detect, render
from envforge.store.layout import check_name

from .shop import Shop


def import_file(shop: Shop, source: str, *, output: str | None = None, name: str | None = None) -> Result[Imported]:
    """Read the file at ``source`` and make a profile called ``name`` of it, written to ``output`` where that is given.

    Raises UsageError: ``unreadable-file``, ``unknown-format``, ``invalid-import``, ``nothing-to-import``,
    ``invalid-name``, ``file-exists``; EnvforgeError ``not-writable``.
    """
    if name is not None:
        check_name(name)
    path = lookup.expanded(source)
    draft = detect.draft(path, name=name)
    text = render.render(draft)
    try:
        loader.loads(text, source)
    except UsageError as error:
        raise UsageError(
            "invalid-import", f"what `{source}` holds makes no valid profile", cause=error.cause
        ) from error
    if output is not None:
        _write(lookup.expanded(output), text)
    shop.tell(Note(text=f"`{source}` is read as {draft.format.words}"))
    imported = Imported(
        name=draft.profile.name, format=draft.format, source=draft.source, profile=text, written=output,
        notes=draft.notes,
    )  # fmt: skip
    return Result(command="import", data=imported)


def _write(path: Path, text: str) -> None:
    """Write a file that is not there yet."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(
            "file-exists", f"`{path}` exists", hint="choose another name, or move it away: nothing is overwritten"
        ) from error
    except OSError as error:
        raise EnvforgeError("not-writable", f"`{path}` cannot be written", cause=error.strerror) from error
