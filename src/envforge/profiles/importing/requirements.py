"""Requirements files and `pip install` command lines: both hold the same words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envforge.model.errors import UsageError
from envforge.profiles.importing import text as texts
from envforge.profiles.importing.indexes import Ask
from envforge.profiles.importing.pip_options import Option, options
from envforge.profiles.importing.requirement import requirement
from envforge.profiles.importing.sketch import Sketch
from envforge.profiles.importing.text import Place, Text, broken

_COMMENT = re.compile(r"(^|\s)#.*$")
_DEEPEST = 20
_OPTIONS = re.compile(r"\s(?=--?[A-Za-z])")
_WHY = {
    "--hash": "the hashes: envforge records those of what it installs, and checks them when it restores",
    "--pre": "`--pre`: pre-releases are taken only where a requirement names one, as `NAME>=2.0rc1` does",
    "--require-hashes": "`--require-hashes`: a profile holds no hashes, the lock of the built environment does",
    "--no-index": "`--no-index`: the default index is asked",
    "--no-binary": "`--no-binary`: a wheel is taken where there is one",
    "--only-binary": "`--only-binary`: an sdist is built where there is no wheel; `--no-build` refuses that",
    "--trusted-host": "`--trusted-host`: certificates are always checked",
    "--torch-backend": "`--torch-backend`: name the index of the build that is wanted",
    "--group": "`--group`: dependency groups stand in a project's own file; name what they hold",
    "--dry-run": "`--dry-run`: it is taken as an installation",
}


@dataclass(slots=True, kw_only=True)
class Reading:
    """What is being read into a sketch. ``chain``: the files that lead here, ``seen``: those that were read.

    ``lenient``: a file that is named and cannot be read is told, and is no error.
    """

    sketch: Sketch
    folder: Path
    lenient: bool = False
    chain: tuple[Path, ...] = ()
    seen: set[tuple[Path, bool]] = field(default_factory=set)


def lines(place: Place, content: str) -> Iterator[tuple[Place, str]]:
    """Logical lines without comments, each with the place where it begins."""
    begun: list[str] = []
    first = 1
    for number, line in enumerate(content.split("\n"), start=1):
        first = first if begun else number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun.append(line[:-1])
            continue
        whole = "".join([*begun, line]) if not (begun and line.lstrip().startswith("#")) else "".join(begun)
        begun = []
        stripped = _COMMENT.sub("", whole).strip()
        if stripped:
            yield place.at(first), stripped
    stripped = _COMMENT.sub("", "".join(begun)).strip()
    if stripped:
        yield place.at(first), stripped


def requirement_lines(reading: Reading, ask: Ask, found: Iterable[tuple[Place, str]], *, bound: bool = False) -> None:
    """Take over the lines of a requirements file; ``bound``: as constraints."""
    for place, line in found:
        if line.startswith("-"):
            try:
                words = shlex.split(line)
            except ValueError:
                reading.sketch.lose(place, f"`{line.split()[0]}`: a quotation that does not end")
                continue
            install_words(reading, ask, place, words, bound=bound)
            continue
        text, *rest = _OPTIONS.split(line, maxsplit=1)
        _take(reading, ask, place, text, bound=bound)
        for option in options(rest[0].split()) if rest else ():
            if option.name:
                _lose(reading, place, option)


def install_words(reading: Reading, ask: Ask, place: Place, words: Sequence[str], *, bound: bool = False) -> None:
    """Take over the words behind `pip install`."""
    for option in options(words):
        _option(reading, ask, place, option, bound=bound)


def _option(reading: Reading, ask: Ask, place: Place, option: Option, *, bound: bool) -> None:
    sketch, value = reading.sketch, option.value
    match option.name:
        case "":
            _take(reading, ask, place, value, bound=bound)
        case "--editable":
            _take(reading, ask, place, value, bound=bound, editable=True)
        case "--requirement":
            _include(reading, ask, place, value, bound=bound)
        case "--constraint":
            _include(reading, ask, place, value, bound=True)
        case "--index-url" | "--default-index":
            sketch.indexes.index(place, ask, value, instead=True)
        case "--extra-index-url" | "--index":
            sketch.indexes.index(place, ask, value, instead=False)
        case "--find-links":
            sketch.indexes.links(place, value)
        case "--upgrade":
            ask.upgrade = True
        case "--no-deps":
            ask.no_deps = True
        case "--no-build-isolation":
            ask.no_build_isolation = True
        case _:
            _lose(reading, place, option)


def _lose(reading: Reading, place: Place, option: Option) -> None:
    reading.sketch.lose(place, _WHY.get(option.name, f"`{option.name}`: a profile has nothing like it"))


def _take(reading: Reading, ask: Ask, place: Place, text: str, *, bound: bool, editable: bool = False) -> None:
    found = requirement(reading.sketch, place, text, editable=editable)
    if found is None:
        return
    if not bound:
        ask.requirements.append(found)
    elif " @ " in found or "[" in found.partition(";")[0]:
        reading.sketch.lose(place, f"`{found}` as a constraint: one has a version, and neither a source nor extras")
    else:
        ask.constraints.append(found)


def _include(reading: Reading, ask: Ask, place: Place, name: str, *, bound: bool) -> None:
    what = "-c" if bound else "-r"
    if "://" in name or "$" in name or not name:
        reading.sketch.lose(place, f"`{what} {name}`: only files beside the source are read")
        return
    text = opened(reading, place, reading.folder / name, f"{what} {name}")
    if text is None:
        return
    real = text.path.resolve()
    if real in reading.chain:
        circle = " -> ".join(f"`{path.name}`" for path in (*reading.chain, real))
        raise broken(place, f"`{what}` goes in a circle: {circle}")
    if len(reading.chain) > _DEEPEST:
        raise broken(place, f"`{what}` leads through more than {_DEEPEST} files, one named by the other")
    if (real, bound) in reading.seen:
        return
    reading.seen.add((real, bound))
    inner = Reading(
        sketch=reading.sketch, folder=text.path.parent, lenient=reading.lenient,
        chain=(*reading.chain, real), seen=reading.seen,
    )  # fmt: skip
    requirement_lines(inner, ask, lines(text.place, text.content), bound=bound)


def opened(reading: Reading, place: Place, path: Path, what: str) -> Text | None:
    """A file that the source names; None where it cannot be read and that is only told.

    Raises InvalidFileError ``invalid-import`` otherwise.
    """
    try:
        return texts.read(path)
    except UsageError as error:
        if reading.lenient:
            reading.sketch.lose(place, f"`{what}`: `{path}` cannot be read ({error.cause})")
            return None
        raise broken(place, f"`{what}`: `{path}` cannot be read ({error.cause})") from error


def file(sketch: Sketch, text: Text, *, freeze: bool) -> None:
    """A requirements file as the one install step of a profile."""
    since = sketch.noted
    ask = Ask(place=text.place, whole=True)
    reading = Reading(sketch=sketch, folder=text.path.parent, chain=(text.path.resolve(),))
    if freeze:
        what = "all that was installed, pinned, in one step: a freeze does not say which of them were asked for"
        sketch.assume(text.place, what)
    requirement_lines(reading, ask, lines(text.place, text.content))
    sketch.install(ask, since)
