"""uv: resolves (in a phantom), installs from a lock, uninstalls, builds."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from envforge.model.errors import EnvforgeError
from envforge.system import environ, process
from envforge.system.http import Proxies, without_credentials
from envforge.system.process import Completed

from .artefacts import Artefact
from .origins import variable_stem
from .replies import HOST, index_url
from .router import Asked, Router

# Resolving xinference[all] takes 21 s; what needs longer than this is backtracking without end.
_RESOLVE_LIMIT = 900.0
_BUILD_LIMIT = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to the resolver: what would installing this change? ``only``: index names, None = all.

    ``constraints`` and ``build_constraints`` are requirement lines. ``upgrade``: names to upgrade.
    ``variant``, ``inside``: see `Router.begin`.
    """

    requirements: tuple[str, ...]
    only: tuple[str, ...] | None = None
    constraints: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    upgrade: tuple[str, ...] = ()
    no_deps: bool = False
    no_build: bool = False
    no_build_isolation: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    variant: str = ""
    inside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """``installed`` or ``uninstalled`` of one (canonical name, version)."""

    name: str
    version: str
    action: str


def binary() -> str:
    """The uv that came with envforge. Raises EnvforgeError where it is missing."""
    from uv import find_uv_bin  # noqa: PLC0415 - looks at the disk, only for who needs uv

    try:
        return str(find_uv_bin())
    except FileNotFoundError as error:
        raise EnvforgeError(
            "uv-missing",
            "the `uv` that envforge depends on is not installed",
            cause=str(error),
            hint="install envforge anew",
        ) from error


def default_index() -> str:
    """The URL that `pypi` means: what uv takes where nothing says otherwise, asked of uv itself."""
    completed = process.run(
        [
            binary(), "pip", "compile", "--no-config", "--offline", "--no-cache", "--no-python-downloads",
            "--no-header", "--python", sys.executable, "--emit-index-url", "/dev/null",
        ],
        env=environ.hermetic(),
        timeout=60,
    )  # fmt: skip
    found = re.search(r"^--index-url (\S+)$", completed.stdout, re.MULTILINE)
    if not found:
        raise EnvforgeError("no-default-index", "uv does not say which index is its default", cause=completed.tail())
    return found[1]


class Uv:
    """One uv for one router. ``cache``: its cache folder, on the file system of the environments; ``roots``: PEM."""

    def __init__(
        self, *, cache: Path, router: Router, proxies: Proxies, roots: Path, link_mode: str, allow: Collection[str] = ()
    ) -> None:
        self._binary = binary()
        self._router = router
        self._proxies = proxies
        self._link_mode = "copy" if link_mode == "copy" else "clone"  # clone falls back to hard links by itself
        self._allow = allow
        self._env = {
            "UV_CACHE_DIR": str(cache),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_NO_PROGRESS": "1",
            "UV_HTTP_TIMEOUT": "120",
            "UV_PREVIEW_FEATURES": "pylock",
            **proxies.for_engine(router.proxy, HOST, roots),
        }

    def resolve(self, target: Sequence[str], ask: Ask, scratch: Path, step: str) -> tuple[Move, ...]:
        """What installing ``ask`` would change in the phantom ``target``; nothing is written there.

        Raises EnvforgeError: ``unsolvable``, ``index-...``, ``package-not-found``, ``resolution-timeout``.
        """
        requirements = scratch / "requirements.txt"
        requirements.write_text("".join(f"{line}\n" for line in ask.requirements))
        arguments = ["pip", "install", "--dry-run", "--output-format", "json", *target, *self._indexes(ask.only)]
        for flag, lines, file in (
            ("--constraint", ask.constraints, scratch / "constraints.txt"),
            ("--build-constraint", ask.build_constraints, scratch / "build-constraints.txt"),
        ):
            if lines:
                file.write_text("".join(f"{line}\n" for line in lines))
                arguments += [flag, str(file)]
        arguments += [word for name in ask.upgrade for word in ("--upgrade-package", name)]
        arguments += ["--no-deps"] if ask.no_deps else []
        arguments += ["--no-build"] if ask.no_build else []
        asked = self._router.begin(ask.only, unbuilt=ask.no_build_isolation, variant=ask.variant, inside=ask.inside)
        completed = self._run([*arguments, "--requirement", str(requirements)], ask.environment, timeout=_RESOLVE_LIMIT)
        if completed.timed_out:
            last = ", ".join(dict.fromkeys(reversed(asked.names[-12:])))
            raise EnvforgeError(
                "resolution-timeout",
                f"the step `{step}` found no solution within {_RESOLVE_LIMIT / 60:.0f} minutes",
                cause=f"the resolver was last trying {last}",
                hint="split the step, or bound the distributions named above with `constraints`",
            )
        if not completed.ok:
            raise self._failure(completed, asked, step)
        try:
            changes = json.loads(completed.stdout)["changes"]
            return tuple(
                Move(name=canonicalize_name(change["name"]), version=change["version"], action=change["action"])
                for change in changes
            )
        except (ValueError, KeyError, TypeError) as error:
            raise EnvforgeError(
                "engine-answer", "uv gave an answer that envforge cannot read", cause=str(error)
            ) from error

    def venv(self, prefix: Path, python: str) -> None:
        """An empty virtual environment at ``prefix``. Raises EnvforgeError."""
        completed = self._run(["venv", "--no-project", "--python", python, "--prompt", prefix.parent.name, str(prefix)])
        if not completed.ok:
            raise EnvforgeError(
                "venv-failed", f"no virtual environment could be made with `{python}`", cause=completed.tail()
            )

    def install(
        self,
        prefix: Path,
        artefacts: Sequence[Artefact],
        scratch: Path,
        log: Path,
        watch: Callable[[int], None] | None = None,
        *,
        beside: Path | None = None,
    ) -> Completed:
        """Install exactly these files (each has its sha256) into ``prefix``; nothing is resolved.

        ``beside``: another folder that gets them instead, byte for byte as ``prefix`` would, scripts included.
        """
        arguments = ["pip", "install", "--no-deps", "--python", str(prefix / "bin" / "python")]
        arguments += ["--prefix", str(beside)] if beside is not None else []
        return self._run([*arguments, *self._exactly(artefacts, scratch)], log=log, watch=watch)

    def uncached(self, artefacts: Sequence[Artefact], python: str, scratch: Path) -> tuple[Artefact, ...]:
        """Those of the files that the cache lacks; nothing is fetched or written. Of each name there may be one.

        ``python`` is a base interpreter. Raises EnvforgeError.
        """
        empty = ["--python", python, "--target", str(scratch / "empty")]
        completed = self._run(
            ["pip", "install", "--no-deps", "--dry-run", "--verbose", *empty, *self._exactly(artefacts, scratch)]
        )
        if not completed.ok:
            raise self.failure(completed, "looking for files")
        lacking = set(re.findall(r"Identified uncached distribution: ([^\s=]+)==", completed.stderr))
        counted = re.search(r"Would download (\d+) package", completed.stderr)
        if len(lacking) != (int(counted[1]) if counted else 0):
            raise EnvforgeError("engine-answer", "uv gave an answer that envforge cannot read", cause=completed.tail())
        return tuple(artefact for artefact in artefacts if artefact.name in lacking)

    def _exactly(self, artefacts: Sequence[Artefact], scratch: Path) -> list[str]:
        """Arguments that name a lock of exactly these files, which is written to ``scratch``."""
        lock = scratch / "pylock.step.toml"
        lock.write_text(_lock([(artefact, self._router.offer(artefact)) for artefact in artefacts]))
        self._router.begin()
        # Only wheels of an index that is named here are found again in uv's cache, whatever the lock says.
        *first, last = dict.fromkeys(index_url(artefact.origin) for artefact in artefacts)
        indexes = [*(word for url in first for word in ("--index", url)), "--default-index", last]
        return [*indexes, "--requirement", str(lock)]

    def uninstall(self, prefix: Path, names: Sequence[str], log: Path) -> Completed:
        return self._run(["pip", "uninstall", "--python", str(prefix / "bin" / "python"), *names], log=log)

    def build(
        self, source: str, out: Path, python: str, *, ask: Ask, scratch: Path, name: str, log: Path | None = None
    ) -> Path:
        """The wheel of the sdist or folder ``source``, built in ``out``; ``name`` for the error. Raises EnvforgeError.

        Several may build at once; the caller has begun the router's run.
        """
        arguments = ["build", "--wheel", "--no-create-gitignore", "--python", python, "--out-dir", str(out)]
        arguments += self._indexes(ask.only)
        if ask.build_constraints:
            file = scratch / "build-constraints.txt"
            file.write_text("".join(f"{line}\n" for line in ask.build_constraints))
            arguments += ["--build-constraint", str(file)]
        arguments += ["--no-build-isolation"] if ask.no_build_isolation else []
        completed = self._run([*arguments, source], ask.environment, timeout=_BUILD_LIMIT, log=log)
        wheels = sorted(out.glob("*.whl"))
        if completed.ok and wheels:
            return wheels[-1]
        if self._router.asked.failures:
            raise self._failure(completed, self._router.asked, name)
        raise EnvforgeError(
            "build-failed",
            f"`{name}` could not be built: {completed.ending()}",
            cause=self._words(completed.tail(30)),
            hint="its build may need a compiler, headers or variables (the step's `environment`); or name a version "
            "that has a wheel",
        )

    def evict(self, names: Sequence[str]) -> Completed:
        """Remove what the cache holds of these distributions."""
        return self._run(["cache", "clean", *names])

    def failure(self, completed: Completed, step: str) -> EnvforgeError:
        """The error of a failed `install`."""
        return self._failure(completed, self._router.asked, step)

    def _indexes(self, only: tuple[str, ...] | None) -> list[str]:
        *first, last = self._router.urls(only)
        return [*(word for url in first for word in ("--index", url)), "--default-index", last]

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        log: Path | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> Completed:
        given = environ.for_engine(environment or {}, builds=arguments[0] == "build")
        extra = {**given, **self._env, "UV_LINK_MODE": self._link_mode}
        return process.run(
            [self._binary, *arguments],
            env=environ.hermetic(extra, self._allow),
            timeout=timeout,
            log=log,
            on_start=watch,
        )

    def _failure(self, completed: Completed, asked: Asked, step: str) -> EnvforgeError:
        """What went wrong, in the user's words: an index first, then the clash that the resolver names."""
        for failure in asked.failures:
            reason = failure.reason + (self._through(failure.index) if failure.kind == "unreachable" else "")
            return index_error(failure.kind, failure.index, failure.name, reason)
        words = self._words(completed.stderr)
        if "No space left on device" in words:
            return EnvforgeError(
                "disk-full",
                f"the step `{step}` filled the disk",
                cause=_tail(words),
                hint="free some space (`df -h`), then run the same command again",
            )
        if "hash mismatch" in words.lower() or "DO NOT MATCH THE HASHES" in words:
            return EnvforgeError(
                "hash-mismatch",
                f"the step `{step}` got a file whose sha256 is not the one that its index states",
                cause=_tail(words),
                hint="nothing of it was installed; ask the index's keeper, or another mirror",
            )
        missing = re.search(r"Because (\S+) was not found in the package registry", words)
        if missing:
            name = missing[1]
            allowed = self._router.routes.allowed(canonicalize_name(name), None)
            where = (
                ", ".join(f"`{self._router.routes.origins[key].name}`" for key in allowed) or "any index of the profile"
            )
            return EnvforgeError(
                "package-not-found",
                f"the step `{step}` needs `{name}`, which is not at {where}",
                cause=_tail(words),
                hint="check the name, or add an index that serves it" + self._empty(),
            )
        if "No solution found" in words:
            return EnvforgeError(
                "unsolvable",
                f"the step `{step}` cannot be solved",
                cause=_tail(words),
                hint=_unsolvable(words),
            )
        return EnvforgeError(
            "engine-failed", f"the step `{step}` failed: its engine ended with {completed.ending()}", cause=_tail(words)
        )

    def _through(self, index: str) -> str:
        """Which proxy an index is asked through, without credentials; nothing where it is asked directly."""
        url = next((origin.url for origin in self._router.routes.origins.values() if origin.name == index), None) or ""
        parts = urlsplit(url)
        proxy = self._proxies.https if parts.scheme == "https" else self._proxies.http
        host = parts.hostname or ""
        direct = any(entry == "*" or f".{host}".endswith(f".{entry.lstrip('*.')}") for entry in self._proxies.exempt)
        if proxy is None or direct or host in {"", "127.0.0.1", "localhost"}:
            return ""
        return f" (through the proxy `{without_credentials(proxy)}`)"

    def _empty(self) -> str:
        """A clause on indexes whose URL may be wrong, since they know nothing at all."""
        empty = ", ".join(f"`{name}`" for name in self._router.empty())
        return f"; {empty} knew none of the names it was asked for: is its URL right?" if empty else ""

    def _words(self, text: str) -> str:
        """The engine's words with the router's addresses replaced by the names that the profile uses."""

        def name(match: re.Match[str]) -> str:
            return f"the index {self._router.index_named(match[0]) or 'of the profile'}"

        return re.sub(rf"http://{re.escape(HOST)}/[0-9a-z]+/simple", name, text)


def index_error(kind: str, index: str, name: str, reason: str) -> EnvforgeError:
    """The error of an index that could not answer."""
    if kind == "unauthorized":
        stem = variable_stem(index)
        return EnvforgeError(
            "index-unauthorized",
            f"the index `{index}` refuses to serve `{name}`",
            cause=reason,
            hint=f"set {stem}_USERNAME and {stem}_PASSWORD, or an entry in netrc",
        )
    if kind == "not-cached":
        return EnvforgeError(
            "not-cached", f"offline, `{name}` cannot be had", cause=reason, hint="run it once without `--offline`"
        )
    if kind == "failed":
        return EnvforgeError("router-failed", "the index router could not go on", cause=reason)
    return EnvforgeError(
        f"index-{kind}",
        f"the index `{index}` gives no usable answer for `{name}`",
        cause=reason,
        hint="check its URL and the network; or name a mirror of it under `mirrors` in the configuration, or another "
        "index that stands in for it under `substitutes`",
    )


def _unsolvable(words: str) -> str:
    """What to do about it: a version that no index has is another matter than two requirements that clash."""
    absent = re.search(r"there (?:is no version|are no versions) of (\S*[=<>~!]\S*?),? ", words)
    absent = absent or re.search(r"Because only .+ (?:is|are) available and you require (\S+), we can conclude", words)
    if absent:
        return f"no index that the step may ask has `{absent[1]}` for this Python: ask for a version that is there"
    return "loosen one of the two requirements, or install them in another order"


def _tail(text: str) -> str:
    """The resolver's words without the lines that only say what it was doing."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [
        line
        for line in lines
        if line and not line.startswith(("Using Python", "Using CPython", "Resolved ", "warning:"))
    ]
    return "\n".join(line.removeprefix("error: ").removeprefix("cause: ") for line in kept[-40:])


def _lock(artefacts: Sequence[tuple[Artefact, str]]) -> str:
    """A PEP 751 lock of exactly these files, at the router's addresses."""
    lines = ['lock-version = "1.0"', 'created-by = "envforge"', ""]
    for artefact, url in artefacts:
        file, digest = json.dumps(artefact.file), json.dumps(artefact.sha256)
        wheel = f"name = {file}, url = {json.dumps(url)}, hashes = {{ sha256 = {digest} }}"
        lines += [
            "[[packages]]",
            f"name = {json.dumps(artefact.name)}",
            f"version = {json.dumps(artefact.version)}",
            f"index = {json.dumps(index_url(artefact.origin))}",
            f"wheels = [{{ {wheel} }}]",
            "",
        ]
    return "\n".join(lines)
