"""What the benchmarks share: a large synthetic world, an index server in a process of its own, and fair timing."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.cli import PYTHON, Answer, Cli
from kit.index import Index
from kit.server import Fault, Handler, Server, Shelf
from kit.wheels import Wheel
from uv import find_uv_bin

__all__ = [
    "PACKAGES", "PYTHON", "REQUIREMENTS", "STEPS", "Answer", "Cli", "Indexes", "answered", "forge", "medians",
    "seconds", "serving", "shell", "tell",
]  # fmt: skip

UV = str(find_uv_bin())
PACKAGES = 400
_LIBRARIES = PACKAGES - 4
_VLLM = range(20, 220)
_BLOCK = random.Random(2).randbytes(4096).hex()  # noqa: S311 - one text every time
_TAGS = ("manylinux_2_17_x86_64", "macosx_11_0_arm64", "win_amd64")
STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch", "install", ("torch", "torchvision")),
    ("vllm", "install", ("vllm==2.0",)),
    ("xinference", "install", ("xinference",)),
    ("pin", "pin", ("lib-100<2",)),
)
REQUIREMENTS = tuple(line for _, _, lines in STEPS for line in lines)


# -- the world --------------------------------------------------------------------------------------------------------


def _group(root: str, members: Sequence[int]) -> dict[str, list[str]]:
    """A root that requires forty members, each of which requires three deeper ones: four levels, as real trees have."""
    names = [f"lib-{number:03}" for number in members]
    needs = {root: [f"{name}>=1" for name in names[:40]]}
    for position, name in enumerate(names):
        deeper = names[40 + 3 * position : 43 + 3 * position]
        needs[name] = [f"{each}>=1,<100" for each in deeper]
    return needs


def world(files: int, *, large: bool = False, heavy: bool = False) -> dict[str, list[Wheel]]:
    """400 wheels on three indexes, each of ``files`` modules; ``large``: every fourth is over 64 KiB.

    ``heavy``: modules of up to 8 KiB, and eight libraries of 128 MiB side by side in torch and vllm.
    """
    needs = _group("torch", range(20)) | _group("vllm", _VLLM) | _group("xinference", range(220, _LIBRARIES))
    needs |= {"torchvision": ["torch"]}
    needs["vllm"].append("torch>=2")
    needs["xinference"] += ["torch", "lib-100"]
    library = _BLOCK * (1 << 14) if heavy else ""
    chance = random.Random(1)  # noqa: S311 - the same world every time
    shelves: dict[str, list[Wheel]] = {"torch": [], "vllm": [], "pypi": []}
    for position, (name, requires) in enumerate(sorted(needs.items())):
        if name.startswith("lib-"):
            requires += [f"lib-{number:03}" for number in chance.sample(range(20), 2) if f"lib-{number:03}" > name]
        module = name.replace("-", "_")
        content = {
            f"{module}/part_{number // 25}/module_{number}.py": f"value = {number}\n{_padding(heavy, number)}"
            for number in range(files)
        }
        if heavy and name in {"torch", "vllm"}:
            content |= {f"{module}/lib/lib{number}.so": library for number in range(4)}
        if large and position % 4 == 0:
            content[f"{module}/data.txt"] = chance.randbytes(100_000).hex()
        extras = {
            extra: tuple(f"{extra}-tool-{number}>=1,!=1.3" for number in range(6)) for extra in ("dev", "docs", "test")
        }
        wheel = Wheel(
            name=name, version="2.0", requires=tuple(requires), files=content, extras=extras, python=">=3.9",
            core=("Description-Content-Type: text/markdown", "", "A line of a long description.\n" * 200),
        )  # fmt: skip
        shelf = "torch" if name.startswith("torch") else "vllm" if name == "vllm" else "pypi"
        shelves[shelf].append(wheel)
        if name == "lib-100":
            shelves[shelf].append(Wheel(name=name, version="1.0", requires=tuple(requires), files=content))
    return shelves


def _padding(heavy: bool, number: int) -> str:
    return f"# {_BLOCK[: number * 761 % len(_BLOCK)]}\n" if heavy else ""


def _older(project: str, number: int) -> dict[str, object]:
    """A row of an old release: pages are long, and nobody fetches what stands there."""
    python = f"cp3{8 + number % 5}"
    file = f"{project.replace('-', '_')}-0.{number // 15}.{number % 15}-{python}-{python}-{_TAGS[number % 3]}.whl"
    digest = hashlib.sha256(file.encode()).hexdigest()
    return {
        "filename": file, "url": f"../../files/{file}", "hashes": {"sha256": digest}, "requires-python": ">=3.8",
        "size": 100_000 + number, "core-metadata": {"sha256": digest}, "yanked": False,
        "upload-time": "2024-01-01T00:00:00.000000Z",
    }  # fmt: skip


class _Handler(Handler):
    """The kit's, as a real index behaves: long pages made once, that may be kept for ten minutes; files for ever."""

    def _answer(self) -> None:
        time.sleep(cast("BenchServer", self.server).latency)
        super()._answer()

    def end_headers(self) -> None:
        age = "31536000, immutable" if "/files/" in self.path else "600, public"
        self.send_header("Cache-Control", f"max-age={age}")
        super().end_headers()

    def _page(self, name: str, shelf: Shelf, wanted: str, fault: Fault | None) -> int | None:
        server = cast("BenchServer", self.server)
        kept = server.pages.get((name, wanted))
        if kept is None:
            return self._error(HTTPStatus.NOT_FOUND)
        etag, body = kept
        changed = self.headers.get("If-None-Match") != etag
        self.send_response(HTTPStatus.OK if changed else HTTPStatus.NOT_MODIFIED)
        self.send_header("ETag", etag)
        if changed:
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if changed:
            self.wfile.write(body)
        return int(HTTPStatus.OK if changed else HTTPStatus.NOT_MODIFIED)


class BenchServer(Server):
    """The kit's index server with made pages. ``latency``: seconds before each answer."""

    def __init__(self, indexes: Mapping[str, Index]) -> None:
        super().__init__(indexes)
        self.RequestHandlerClass = _Handler
        self.latency = 0.0
        self.pages: dict[tuple[str, str], tuple[str, bytes]] = {}
        for name, index in indexes.items():
            files = self.shelves[name].files
            for number, project in enumerate(dict.fromkeys(wheel.name for wheel in index.artefacts)):
                listing = index.listing(f"{self.base}/{name}", project, files)
                assert listing is not None, project
                page = json.loads(listing[0])
                old = [_older(project, row) for row in range(5 + number * 37 % 300)]
                if index.metadata is not True:
                    old = [{key: value for key, value in row.items() if key != "core-metadata"} for row in old]
                body = json.dumps({**page, "files": [*old, *page["files"]]}).encode()
                self.pages[(name, project)] = (f'"{hashlib.sha256(body).hexdigest()[:16]}"', body)


def _serve(pipe: Connection, other: Connection, metadata: bool, shape: dict[str, Any]) -> None:
    other.close()  # so that this ends when whoever asked for it is gone
    shelves = world(**shape)
    shelves["all"] = [wheel for wheels in shelves.values() for wheel in wheels]
    indexes = {name: Index(artefacts=wheels, metadata=metadata) for name, wheels in shelves.items()}
    server = BenchServer(indexes)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    pipe.send(server.base)
    while True:
        try:
            command, value = pipe.recv()
        except EOFError:
            return
        if command == "stop":
            return
        if command == "latency":
            server.latency = value
        if command == "forget":
            server.forget()
        pipe.send(Counter(request.kind for request in server.requests()))


@dataclass(frozen=True, kw_only=True)
class Indexes:
    """The running server: three indexes, and ``all`` with everything."""

    base: str
    pipe: Connection

    def url(self, name: str) -> str:
        return f"{self.base}/{name}/simple/"

    def requests(self) -> Counter[str]:
        """Answered so far: kind (page, metadata, file) -> count."""
        return self._do("count", None)

    def forget(self) -> None:
        self._do("forget", None)

    def latency(self, seconds: float) -> None:
        self._do("latency", seconds)

    def _do(self, command: str, value: object) -> Counter[str]:
        self.pipe.send((command, value))
        return cast("Counter[str]", self.pipe.recv())


@contextmanager
def serving(*, metadata: bool = True, files: int = 3, **shape: bool) -> Iterator[Indexes]:
    """The world on loopback, served by another process, so that it takes no time from what is measured.

    ``files`` and ``shape``: see `world`.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_serve, args=(there, here, metadata, {"files": files, **shape}), daemon=True)
    child.start()
    there.close()
    try:
        yield Indexes(base=here.recv(), pipe=here)
    finally:
        here.send(("stop", None))
        child.join()


# -- what is measured -------------------------------------------------------------------------------------------------


def profile(indexes: Indexes) -> str:
    """A profile of four steps, in which a guard opens and heals."""
    document = {
        "schema": 1,
        "name": "demo",
        "python": PYTHON,
        "indexes": [
            {"name": "torch-cu126", "url": indexes.url("torch"), "packages": ["torch", "torchvision"]},
            {"name": "vllm", "url": indexes.url("vllm"), "packages": ["vllm"]},
            {"name": "pypi", "url": indexes.url("pypi")},
        ],
        "steps": [{"name": name, action: list(lines)} for name, action, lines in STEPS],
        "guards": [{"keep": ["torch"]}, {"hold": "lib-100<2"}],
    }
    return json.dumps(document)  # JSON is YAML


def forge(root: Path, indexes: Indexes) -> Cli:
    """A command line in an empty home, with the profile ``demo`` at hand."""
    cli = Cli(root=root)
    (cli.work / "profiles" / "demo.yaml").write_text(profile(indexes))
    return cli


def answered(answer: Answer) -> Answer:
    """The answer, if the command came out well."""
    if answer.exit != 0:
        raise SystemExit(str(answer)[-3000:])
    return answer


def shell(*words: str, cache: Path) -> None:
    """Run uv with nothing of the host's but a cache of its own."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(cache.parent), "UV_CACHE_DIR": str(cache)}
    ended = subprocess.run([UV, *words], env=variables, capture_output=True, text=True, check=False, cwd=cache.parent)
    if ended.returncode:
        raise SystemExit(ended.stderr[-3000:])


def seconds(action: Callable[[], object]) -> float:
    """How long it took."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def medians(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """The median of what each says in ``rounds`` rounds; in turns, so that a busy machine is unfair to none."""
    said: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, results in zip(actions, said, strict=True):
            results.append(action())
    return [statistics.median(results) for results in said]


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
