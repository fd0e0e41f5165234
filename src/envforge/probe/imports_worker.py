"""What Python files import, read by ``ast`` and never run: a program of its own, since a file can crash the parser.

It is started by its path in an isolated Python, so it imports nothing of envforge. Its argument is a file of one JSON
object, ``{"root": path, "out": path, "standard": [module], "distributions": [{"name", "files": [[module, path, hash]],
"packages": [module], "roots": [module], "starts": [module]}]}``. To ``out`` goes one line of JSON for each, as soon as
it is done: ``{"name", "imports": [[module, kind, path, line]], "unread": [path], "altered": bool}``.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import stat
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

REACHED, MODULE, LAZY, GUARDED = "reached", "module", "lazy", "guarded"
_RANK = {kind: rank for rank, kind in enumerate((REACHED, MODULE, LAZY, GUARDED))}
_DEPTH = 3  # parts of a module's name that are told: enough to tell the parts of a namespace apart
_LARGEST = 64 << 20  # bytes
_DATA = 1 << 19  # bytes: what is larger hardly is written by hand; only its plain imports are read
_CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_WORD = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)
_PLAIN = re.compile(rb"^(?:from|import)[ \t][^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_COPIED = re.compile(r"(^|\.)_?(vendor|extern)")
_VENDOR = re.compile(r"_?(vendor|extern|submodules|third_?party|3rd_?party)", re.IGNORECASE)


class Import(NamedTuple):
    """One import as it stands in a file: ``names`` of a ``from``, None of a plain one; ``level``: leading dots."""

    module: str
    level: int
    names: tuple[str, ...] | None
    kind: str
    line: int


# -- one file ----------------------------------------------------------------------------------------------------------


def imports(content: bytes) -> list[Import]:
    """Every import of a file that can ever run; ``kind`` is ``module`` where it runs whenever the file is imported.

    Raises what ``ast.parse`` raises.
    """
    found: list[Import] = []
    for body in _statements(content):
        _block(body, MODULE, found)
    return found


def _statements(content: bytes) -> list[list[ast.stmt]]:
    """The statements of a file; of a very large one only the imports that begin a line, if that can be made out."""
    if len(content) >= _DATA:
        try:
            return [
                ast.increment_lineno(ast.parse(match[0]), content.count(b"\n", 0, match.start())).body
                for match in _PLAIN.finditer(content)
            ]
        except SyntaxError:
            pass
    return [ast.parse(content).body]


def _block(body: Iterable[ast.stmt], kind: str, found: list[Import]) -> None:
    for node in body:
        match node:
            case ast.Import():
                found.extend(Import(alias.name, 0, None, kind, node.lineno) for alias in node.names)
            case ast.ImportFrom():
                names = tuple(alias.name for alias in node.names)
                found.append(Import(node.module or "", node.level, names, kind, node.lineno))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _block(node.body, LAZY if kind == MODULE else kind, found)
            case ast.ClassDef():
                _block(node.body, kind, found)
            case ast.If():
                _condition(node, kind, found)
            case ast.Try() | ast.TryStar():
                _attempt(node, kind, found)
            case ast.With() | ast.AsyncWith():
                _block(node.body, GUARDED if any(map(_suppresses, node.items)) else kind, found)
            case ast.For() | ast.AsyncFor() | ast.While():
                _block(node.body, GUARDED, found)
                _block(node.orelse, GUARDED, found)
            case ast.Match():
                for case in node.cases:
                    _block(case.body, GUARDED, found)


def _condition(node: ast.If, kind: str, found: list[Import]) -> None:
    decided = _decided(node.test)
    if decided is not False:
        _block(node.body, kind if decided else GUARDED, found)
    if decided is not True:
        _block(node.orelse, kind if decided is False else GUARDED, found)


def _attempt(node: ast.Try | ast.TryStar, kind: str, found: list[Import]) -> None:
    """A failure that is caught only to be raised again is none that the file survives."""
    caught = [handler for handler in node.handlers if _catches(handler.type)]
    guards = bool(caught) and not all(_raises(handler) for handler in caught)
    _block(node.body, GUARDED if guards else kind, found)
    for handler in node.handlers:
        _block(handler.body, GUARDED, found)
    _block(node.orelse, GUARDED if any(not _raises(handler) for handler in node.handlers) else kind, found)
    _block(node.finalbody, kind, found)


def _catches(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    if isinstance(caught, ast.Tuple):
        return any(map(_catches, caught.elts))
    name = _last(caught)
    return name in _CATCHING or "Import" in name


def _raises(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and _last(call.func) == "suppress"


def _last(node: ast.expr) -> str:
    """The last name of ``a.b.c``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _decided(test: ast.expr) -> bool | None:  # noqa: PLR0911 - one line a form is the clearest
    """What a condition always is in a program on Linux, as far as it is of types, the platform or the main program."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            decided = _decided(operand)
            return None if decided is None else not decided
        case ast.BoolOp(op=operator, values=values):
            every = [_decided(value) for value in values]
            decisive = isinstance(operator, ast.Or)
            return decisive if decisive in every else (not decisive if None not in every else None)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as operator], comparators=[ast.Constant(value=value)]):
            here = _here(left)
            return None if here is None else (value == here) == isinstance(operator, ast.Eq)
        case ast.Call(func=ast.Attribute(attr="startswith", value=value), args=[ast.Constant(value=str(start))]):
            here = _here(value)
            return None if here is None else here.startswith(start)
    return None


def _here(node: ast.expr) -> str | None:
    """What ``node`` is on Linux, in a module that is imported."""
    return {
        "sys.platform": "linux",
        "os.name": "posix",
        "platform.system()": "Linux",
        "__name__": "",
    }.get(ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Call) else "")


# -- one distribution --------------------------------------------------------------------------------------------------


class Distribution:
    """Its files as modules, each parsed at most once."""

    def __init__(self, raw: dict[str, Any], standard: frozenset[str]) -> None:
        self.files: dict[str, tuple[str, str]] = {module: (path, sha256) for module, path, sha256 in raw["files"]}
        self.packages = frozenset(raw["packages"])
        self.roots: list[str] = raw["roots"]
        self.starts: list[str] = raw["starts"]
        self.unread: list[str] = []
        self.altered = False
        self.found: dict[tuple[str, ...], tuple[str, str, int]] = {}
        self._own = frozenset(self.roots)
        self._quiet = frozenset({root.partition(".")[0] for root in self.roots if "." not in root}) | standard
        self._vendored = _vendored(self.files)
        self._parsed: dict[str, list[Import]] = {}

    def look(self) -> None:
        """Fill ``found``: module's parts -> the strongest kind of import, and the first place of that kind."""
        reached = self._reached()
        # The reached ones first: what they import for sure, no other file can import more surely.
        for module in (*sorted(reached), *sorted(self.files.keys() - reached)):
            for item in self._imports(module, whole=module in reached):
                kind = REACHED if item.kind == MODULE and module in reached else item.kind
                if kind != REACHED and _COPIED.search(module):
                    continue  # what a library that was copied in could do besides, nobody here asks of it
                for parts in self._foreign(module, item, kind):
                    self._add(parts, kind, self.files[module][0], item.line)

    def _add(self, parts: tuple[str, ...], kind: str, path: str, line: int) -> None:
        before = self.found.get(parts)
        if before is None or _RANK[kind] < _RANK[before[0]]:
            self.found[parts] = (kind, path, line)

    def _reached(self) -> set[str]:
        """The modules that importing the package runs."""
        pending = deque(module for module in self.starts if module in self.files)
        reached = set(pending)
        while pending:
            module = pending.popleft()
            for item in self._imports(module, whole=True):
                if item.kind != MODULE:
                    continue
                for name in self._inside(module, item):
                    if name not in reached:
                        reached.add(name)
                        pending.append(name)
        return reached

    def _inside(self, module: str, item: Import) -> Iterator[str]:
        """The modules of this distribution that an import runs, the packages around them included."""
        base = self._absolute(module, item)
        wanted = [base, *(f"{base}.{name}" for name in item.names or ())]
        for name in wanted:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                outer = ".".join(parts[:end])
                if outer in self.files:
                    yield outer

    def _absolute(self, module: str, item: Import) -> str:
        if not item.level:
            return item.module
        parts = module.split(".")
        up = item.level - (module in self.packages)
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, item.module] if item.module else base)

    def _foreign(self, module: str, item: Import, kind: str) -> Iterator[tuple[str, ...]]:
        """What an import takes from elsewhere, each as the parts of its name."""
        if item.level:
            return
        parts = tuple(item.module.split("."))[:_DEPTH]
        if parts[0] in self._quiet or parts[0] in self._vendored or (kind != REACHED and self._beside(module, parts)):
            return
        if item.names is None or len(parts) == _DEPTH:
            wanted = [parts]
        else:
            wanted = [(*parts, name) if name != "*" else parts for name in item.names]
        for each in wanted:
            if not any(".".join(each[:end]) in self._own for end in range(1, len(each) + 1)):
                yield each

    def _beside(self, module: str, parts: tuple[str, ...]) -> bool:
        """Whether a file or folder beside it, or beside a folder around it, bears the name: found by a ``sys.path``."""
        around = module.split(".")[:-1]
        return any(
            name != module and (name in self.files or name in self.packages)
            for name in (".".join([*around[:end], parts[0]]) for end in range(len(around), 0, -1))
        )

    def _imports(self, module: str, *, whole: bool) -> list[Import]:
        if module not in self._parsed:
            path, sha256 = self.files[module]
            content = _read(path)
            if content is None:
                self.unread.append(path)
                self.altered = True
                return self._parsed.setdefault(module, [])
            self.altered |= bool(sha256) and sha256 != _declared(content)
            if not whole and not self._interesting(content):
                return []
            try:
                self._parsed[module] = imports(content)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.unread.append(path)
                self._parsed[module] = []
        return self._parsed[module]

    def _interesting(self, content: bytes) -> bool:
        """Whether any line looks like an import that could add to what is found: most files are spared the parser.

        Of a module that was imported by its bare name, which hardly is a namespace, what is imported below is the same.
        """
        for match in _WORD.finditer(content):
            for word in (match[1] or match[2]).split(b","):
                top = word.strip().partition(b" ")[0].partition(b".")[0].decode("ascii", "replace")
                if top and top not in self._quiet and top not in self._vendored and not self._settled(top):
                    return True
        return False

    def _settled(self, top: str) -> bool:
        found = self.found.get((top,))
        return found is not None and found[0] in {REACHED, MODULE}


def _vendored(files: Iterable[str]) -> frozenset[str]:
    """Names of what lies in folders for other people's code."""
    found = set()
    for module in files:
        parts = module.split(".")
        found |= {parts[number + 1] for number, part in enumerate(parts[:-1]) if _VENDOR.match(part)}
    return frozenset(found)


def _read(path: str) -> bytes | None:
    """The bytes of a regular file that is not too large; None else."""
    try:
        # A planted pipe must not block, a planted symlink not lead elsewhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = stream.read(_LARGEST + 1)
    except OSError:
        return None
    return content if len(content) <= _LARGEST else None


def _declared(content: bytes) -> str:
    """The hash as a RECORD writes it."""
    digest = hashlib.sha256(content).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def main(file: str) -> None:
    warnings.simplefilter("ignore")  # of escapes in other people's strings
    request = json.loads(Path(file).read_text(encoding="utf-8"))
    root, standard = request["root"], frozenset(request["standard"])
    os.chdir(root)
    with Path(request["out"]).open("a", encoding="utf-8") as out:
        for raw in request["distributions"]:
            work = Distribution(raw, standard)
            work.look()
            found = [[".".join(parts), *place] for parts, place in sorted(work.found.items())]
            line = {"name": raw["name"], "imports": found, "unread": sorted(work.unread), "altered": work.altered}
            out.write(json.dumps(line) + "\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
