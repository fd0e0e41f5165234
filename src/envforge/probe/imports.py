"""What the distributions of a prefix import, without importing any of it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from envforge.model.imports import Import, Imports, Kind
from envforge.system import environ, process

from . import prefix as prefixes
from .installed import Info
from .layout import Layout, layout
from .sites import names, sites
from .standard import ALWAYS

_CODE = (".py", ".so", ".pth")
_LIMIT = 900.0
_ADDING = re.compile(r"\bsys\.path\b|\baddsitedir\b")
_LITERAL = re.compile(r"""['"]([\w-][\w./-]*)['"]""")
_MAPPING = re.compile(r"^MAPPING\b[^=\n]*=\s*(\{.*\})\s*$", re.MULTILINE)  # as setuptools writes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The code of one distribution. ``files``: path in the prefix -> the hash as its RECORD writes it.

    ``bases``: folders with files of it, besides site-packages, that a ``.pth`` makes Python import from. ``digest``
    depends on paths in site-packages and hashes alone; None where a file has no hash, or what the distribution brings
    lies outside of the prefix.
    """

    info: Info
    files: Mapping[str, str]
    bases: frozenset[str]
    digest: str | None

    @property
    def name(self) -> str:
        """Canonical."""
        return self.info.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """``lasting``: what was read is what the RECORD says, and will be as long as that says so."""

    imports: Imports
    lasting: bool


def sources(prefix: Path) -> tuple[Source, ...]:
    """Every distribution of ``prefix``, by name; its RECORD is read, its code is not."""
    root = os.path.realpath(prefix)
    added = tuple(_added(root))
    return tuple(_source(root, each, added) for each in prefixes.owned(prefix))


def _added(root: str) -> Iterator[str]:
    """The ends of folders in site-packages from which ``.pth`` files make Python import besides.

    Lines of code are not run: any text in one that adds to ``sys.path`` may be such an end.
    """
    for site in sites(root):
        for name in names(f"{root}/{site}"):
            for line in _text(f"{root}/{site}/{name}").splitlines() if name.endswith(".pth") else ():
                if line.startswith(("import ", "import\t")):
                    yield from _LITERAL.findall(line) if _ADDING.search(line) else ()
                elif not line.startswith(("/", "#")) and line.strip(" ./"):
                    yield line.strip().strip("./")


def _bases(files: Iterable[str], added: tuple[str, ...]) -> Iterator[str]:
    for end in added:
        for path in files:
            position = path.find(f"/{end}/")
            if position >= 0:
                yield path[: position + 1 + len(end)]


def _source(root: str, owned: prefixes.Owned, added: tuple[str, ...]) -> Source:
    start = f"{owned.info.site}/"
    files = {path: said for path, said in owned.files.items() if path.endswith(_CODE) and path.startswith(start)}
    bases = frozenset(_bases(files, added))
    lines = sorted(
        [*(f"{path[len(start) :]},{said}" for path, said in files.items()), *(base[len(start) :] for base in bases)]
    )
    lasts = all(files.values()) and next(_elsewhere(root, files), None) is None
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lasts else None
    return Source(info=owned.info, files=files, bases=bases, digest=digest)


def _elsewhere(root: str, files: Iterable[str]) -> Iterator[str]:
    """The top-level names that lie outside of the prefix, where files of an editable installation lead to."""
    for path in files:
        if path.endswith("/site-packages/" + path.rpartition("/")[2]) and path.endswith(".pth"):
            for line in _text(f"{root}/{path}").splitlines():
                if line.startswith("/") and "\0" not in line:
                    yield from _tops(line.strip())
        elif path.rpartition("/")[2].startswith("__editable__"):
            mapping = _MAPPING.search(_text(f"{root}/{path}"))
            if mapping is not None:
                yield from _keys(mapping[1])


def _tops(folder: str) -> Iterator[str]:
    """The names of what can be imported from a folder."""
    yield from (name.partition(".")[0] for name in names(folder) if name.endswith((".py", ".so")) or "." not in name)


def _keys(text: str) -> Iterator[str]:
    """The keys of a dict that is written down; nothing where it is none."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    if isinstance(found, dict):
        yield from map(str, found)


def _text(path: str) -> str:
    try:
        # A planted pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - a descriptor, not a path
            return stream.read()
    except OSError:
        return ""


def present(prefix: Path) -> frozenset[str]:
    """The top-level names that can be imported from the site-packages of ``prefix``, whoever put them there."""
    root = os.path.realpath(prefix)
    return frozenset(name for site in sites(root) for name in _tops(f"{root}/{site}"))


def read(prefix: Path, wanted: Iterable[Source], folder: Path) -> Mapping[str, Read]:
    """Canonical name -> what the distribution imports, for each of ``wanted``.

    The files are parsed in child processes, one for each core, that leave what they find in ``folder``, an empty one.
    What a child that crashes was at is told as unread, all of it. Raises OSError where none can be started.
    """
    root = os.path.realpath(prefix)
    by_name = {source.name: source for source in wanted}
    layouts = {name: layout(root, source.info, source.files, source.bases) for name, source in by_name.items()}
    shares = [share for share in _shared(layouts, len(os.sched_getaffinity(0))) if share]
    over = Event()
    with ThreadPoolExecutor(max_workers=max(len(shares), 1)) as pool:
        try:
            jobs = [
                pool.submit(_share, root, folder / str(number), {name: layouts[name] for name in share}, over)
                for number, share in enumerate(shares)
            ]
            lines = {str(line["name"]): line for job in jobs for line in job.result()}
        except BaseException:
            # The pool waits for its threads, and they for their children: those must end first, and no others begin.
            over.set()
            process.end_all()
            raise
    return {name: _result(root, by_name[name], found, lines.get(name)) for name, found in layouts.items()}


def _shared(layouts: Mapping[str, Layout], count: int) -> list[list[str]]:
    """The names in ``count`` shares with about as many files each."""
    shares: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for name in sorted(layouts, key=lambda name: (-len(layouts[name].files), name)):
        least = sizes.index(min(sizes))
        shares[least].append(name)
        sizes[least] += len(layouts[name].files)
    return shares


def _share(root: str, place: Path, layouts: Mapping[str, Layout], over: Event) -> list[Any]:
    """The lines of a worker; where it crashes, another goes on behind what it was at, unless all is ``over``."""
    out = place.with_suffix(".out")
    out.touch(0o600)
    pending = list(layouts)
    while pending and not over.is_set():
        request = {
            "root": root,
            "out": str(out),
            "standard": sorted(ALWAYS),
            "distributions": [_request(name, layouts[name]) for name in pending],
        }
        place.write_text(json.dumps(request), encoding="utf-8")
        program = Path(__file__).with_name("imports_worker.py")
        ended = process.run([sys.executable, "-I", str(program), str(place)], env=environ.hermetic(), timeout=_LIMIT)
        done = {str(line["name"]) for line in _lines(out)}
        rest = [name for name in pending if name not in done]
        pending = [] if ended.ok else rest[1:]
    return list(_lines(out))


def _request(name: str, found: Layout) -> Mapping[str, Any]:
    return {
        "name": name,
        "files": [[module, path, said] for module, (path, said) in found.files.items()],
        "packages": sorted(found.packages),
        "roots": found.roots,
        "starts": found.starts,
    }


def _lines(out: Path) -> Iterator[Any]:
    for line in out.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # a worker died in the middle of it
            continue


def _result(root: str, source: Source, found: Layout, line: Any) -> Read:
    provides = (*found.roots, *_elsewhere(root, source.files))
    start = len(f"{source.info.site}/")
    if line is None:
        unread = tuple(sorted(path[start:] for path, _ in found.files.values()))
        return Read(imports=Imports(provides=provides, unread=unread), lasting=False)
    return Read(
        imports=Imports(
            imports=tuple(
                Import(module=module, kind=Kind(kind), path=path[start:], line=number)
                for module, kind, path, number in line["imports"]
            ),
            provides=provides,
            unread=tuple(path[start:] for path in line["unread"]),
        ),
        lasting=source.digest is not None and not line["altered"],
    )
