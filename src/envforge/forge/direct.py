"""Requirements that name a Git commit, a path or a URL: each becomes a wheel of envforge's own store, built once."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envforge.engines.built import BuiltWheel
from envforge.engines.uv import Ask
from envforge.model.errors import EnvforgeError
from envforge.model.profile import Step
from envforge.model.state import Origin
from envforge.system import environ, process
from envforge.system.http import Unreachable, body, without_credentials

from .bench import Bench
from .variants import variant

_SHA256 = 64
_SCHEMES = frozenset({"https", "http", "ssh", "git", "file"})


def localise(bench: Bench, step: Step, base: Path, *, no_build: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The step's requirements with every direct reference replaced by the version that was built from it.

    ``base`` is the profile's folder, from which relative paths count. The second value names what had to be built, its
    code run. Raises EnvforgeError; ``build-refused`` where ``no_build`` forbids that.
    """
    lines: list[str] = []
    builds: list[str] = []
    for line in step.arguments:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            lines.append(line)
            continue
        if requirement.url is None:
            lines.append(line)
            continue
        if requirement.marker is not None and not requirement.marker.evaluate(dict(bench.facts.markers)):
            continue
        if canonicalize_name(requirement.name) in map(canonicalize_name, step.no_build_isolation):
            raise EnvforgeError(
                "no-isolation-here",
                f"the step `{step.name}` builds `{requirement.name}` without isolation, which needs an index's sdist",
                hint="serve it from an index, or build its wheel beforehand and name that",
            )
        own = _Source(bench, step, requirement.name, builds, no_build=no_build).wheel(requirement.url, base)
        if own.name != canonicalize_name(requirement.name):
            raise EnvforgeError(
                "other-name",
                f"the step `{step.name}` asks for `{requirement.name}`, and what it names is `{own.name}`",
                hint="write the name that the distribution has",
            )
        bench.built.offer(own)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        lines.append(f"{own.name}{extras}=={own.version}{marker}")
    return tuple(lines), tuple(builds)


class _Source:
    """One direct reference of one step; what is built is noted in ``builds``."""

    def __init__(self, bench: Bench, step: Step, name: str, builds: list[str], *, no_build: bool) -> None:
        self._bench = bench
        self._step = step
        self._name = name
        self._builds = builds
        self._no_build = no_build

    def wheel(self, url: str, base: Path) -> BuiltWheel:
        """The wheel that ``url`` leads to."""
        if url.startswith("git+"):
            return self._from_git(url.removeprefix("git+"))
        try:
            address, said = _fragment(url)
            parts = urlsplit(address)
        except ValueError as error:
            raise EnvforgeError(
                "bad-url", f"the step `{self._step.name}` names an address that is none", cause=str(error)
            ) from error
        self._check_hash(address, said)
        if parts.scheme in {"http", "https"}:
            return self._from_url(address, said)
        path = Path(unquote(parts.path)) if parts.scheme == "file" else base / address
        if not path.exists():
            raise EnvforgeError(
                "path-missing",
                f"the step `{self._step.name}` names `{path}`, which does not exist",
                hint="paths count from the profile's folder",
            )
        wanted = said.get("sha256")
        if wanted and path.is_file():
            self._match(str(path), wanted, hashlib.sha256(path.read_bytes()).hexdigest())
        return self._from_path(path)

    def _check_hash(self, address: str, said: dict[str, str]) -> None:
        """Refuse what the fragment asks for and nobody would check."""
        odd = [key for key in said if key.lower() in {"sha1", "sha224", "sha384", "sha512", "md5"} or key == "SHA256"]
        part = "subdirectory" in said and not address.endswith(".whl")
        if odd or ("sha256" in said and len(said["sha256"]) != _SHA256) or part:
            raise EnvforgeError(
                "bad-fragment",
                f"the step `{self._step.name}` has a reference whose fragment cannot be followed",
                cause=", ".join(f"{key}={value}" for key, value in said.items()),
                hint="`#sha256=` with 64 digits is checked; `subdirectory` works with Git only",
            )

    @staticmethod
    def _match(shown: str, wanted: str, actual: str) -> None:
        if wanted.lower() != actual:
            raise EnvforgeError("hash-mismatch", f"`{shown}` has sha256 {actual}, the profile says {wanted}")

    def _online(self, shown: str) -> None:
        if self._bench.offline:
            raise EnvforgeError(
                "not-cached", f"offline, `{shown}` cannot be had", hint="run it once without `--offline`"
            )

    def _key(self, source: str) -> str:
        """What is built with other variables or build constraints is another wheel."""
        return f"{source}{variant(self._step)}"

    def _keep(self, source: str, path: Path, origin: Origin, shown: str) -> BuiltWheel:
        """Take a wheel as it is, build anything else."""
        if path.suffix == ".whl":
            return self._bench.built.keep(path, origin, source)
        if self._no_build:
            raise EnvforgeError(
                "build-refused",
                f"the step `{self._step.name}` needs `{shown}`, which must be built, and --no-build forbids it",
                hint="name a wheel, or leave out --no-build",
            )
        self._builds.append(shown)
        return build(self._bench, self._step, self._name, str(path), origin=origin, source=source)

    def _scratch(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._bench.scratch))

    def _from_path(self, path: Path) -> BuiltWheel:
        digest = _tree_digest(path)
        source = self._key(f"path:{digest}")
        known = self._bench.built.of_source(source)
        if known is not None:
            return known
        origin = Origin(kind="path", url=path.resolve().as_uri(), sha256=digest)
        if path.is_dir():
            # A build leaves folders beside its source, which is the user's and not ours to write to.
            copy = self._scratch() / "source"
            try:
                shutil.copytree(path, copy, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            except shutil.Error as error:
                raise EnvforgeError(
                    "path-unreadable", f"`{path}` cannot be read whole", cause=str(error)[:400]
                ) from error
            return self._keep(source, copy, origin, str(path))
        return self._keep(source, path, origin, str(path))

    def _from_url(self, address: str, said: dict[str, str]) -> BuiltWheel:
        shown = without_credentials(address)
        wanted = said.get("sha256", "").lower()
        known = self._bench.built.of_source(self._key(f"url:{wanted}")) if wanted else None
        if known is not None:
            return known
        file = unquote(urlsplit(address).path).rpartition("/")[2]
        if not file.endswith((".whl", ".tar.gz", ".zip")):
            raise EnvforgeError(
                "not-a-distribution",
                f"`{shown}` is neither a wheel nor an sdist",
                hint="its last part must be the file's name",
            )
        self._online(shown)
        target = self._scratch() / file
        digest = hashlib.sha256()
        try:
            response = self._bench.client.stream(address)
            if response.status_code != 200:
                response.close()
                raise Unreachable(f"status {response.status_code}")  # noqa: TRY301 - one end for all that can happen
            with target.open("wb") as stream:
                for chunk in body(response):
                    digest.update(chunk)
                    stream.write(chunk)
        except Unreachable as error:
            raise EnvforgeError("url-unreachable", f"`{shown}` cannot be fetched", cause=str(error)) from error
        actual = digest.hexdigest()
        if wanted:
            self._match(shown, wanted, actual)
        # By what came, not by its address: without a hash another file may lie there tomorrow.
        source = self._key(f"url:{actual}")
        origin = Origin(kind="url", url=shown, sha256=actual)
        return self._bench.built.of_source(source) or self._keep(source, target, origin, shown)

    def _from_git(self, url: str) -> BuiltWheel:
        address, said = _fragment(url)
        scheme, _, rest = address.partition("://")
        path, at, wanted = rest.rpartition("@")
        # An @ before the first slash belongs to the user name, not to a revision.
        repository, revision = (f"{scheme}://{path}", wanted) if at and "/" in path else (address, "HEAD")
        folder = said.get("subdirectory", "")
        shown = without_credentials(repository)
        if scheme not in _SCHEMES or revision.startswith("-"):
            raise EnvforgeError(
                "git-refused",
                f"the step `{self._step.name}` names `git+{shown}@{revision}`, which git is not asked for",
                hint=f"use one of {', '.join(sorted(_SCHEMES))}, and a branch, tag or commit",
            )
        clone = self._scratch() / "clone"
        known = self._bench.built.of_source(self._key(f"git:{shown}@{revision}#{folder}"))
        if known is not None:
            return known  # a whole commit, built before: nothing to ask
        self._online(shown)
        commit = self._fetch(clone, repository, revision, shown)
        source = self._key(f"git:{shown}@{commit}#{folder}")
        known = self._bench.built.of_source(source)
        if known is not None:
            return known
        tree = (clone / folder).resolve()
        if not tree.is_dir() or not tree.is_relative_to(clone.resolve()):
            raise EnvforgeError("git-failed", f"`{shown}` has no folder `{folder}`")
        origin = Origin(kind="git", url=shown, commit=commit)
        return self._keep(source, tree, origin, f"git+{shown}@{commit[:12]}")

    def _fetch(self, clone: Path, repository: str, revision: str, shown: str) -> str:
        """Check one revision out; returns the commit. Raises EnvforgeError."""
        git = shutil.which("git")
        if git is None:
            raise EnvforgeError(
                "git-missing",
                f"the step `{self._step.name}` names `{shown}`, and there is no `git`",
                hint="install git",
            )
        env = environ.hermetic({"GIT_TERMINAL_PROMPT": "0", **_git_proxies(self._bench)})
        commands = (
            [git, "init", "--quiet", str(clone)],
            [git, "-C", str(clone), "fetch", "--quiet", "--depth", "1", "--", repository, revision],
            [git, "-C", str(clone), "checkout", "--quiet", "FETCH_HEAD"],
            [git, "-C", str(clone), "rev-parse", "HEAD"],
        )
        commit = ""
        for argv in commands:
            completed = process.run(argv, env=env, timeout=1800)
            if not completed.ok:
                raise EnvforgeError(
                    "git-failed",
                    f"`{revision}` of `{shown}` cannot be fetched",
                    cause=completed.tail(),
                    hint="name a branch, a tag or a full commit that the repository serves",
                )
            commit = completed.stdout.strip()
        return commit


def _fragment(url: str) -> tuple[str, dict[str, str]]:
    """The address, and what its fragment says (``sha256=...&subdirectory=...``)."""
    address, _, fragment = url.partition("#")
    return address, dict(parse_qsl(fragment))


def _git_proxies(bench: Bench) -> dict[str, str]:
    host = bench.proxies
    found = {"http_proxy": host.http, "https_proxy": host.https, "no_proxy": ",".join(host.exempt) or None}
    return {name: value for name, value in found.items() if value}


def build(
    bench: Bench,
    step: Step,
    name: str,
    path: str,
    *,
    origin: Origin,
    source: str,
    python: str | None = None,
) -> BuiltWheel:
    """Build a wheel from an sdist or folder and keep it under the key ``source``. Raises EnvforgeError."""
    interpreter = python or bench.python
    if interpreter is None:
        needed = f"a Python {bench.facts.version} on {bench.facts.architecture}"
        raise EnvforgeError(
            "python-missing",
            f"`{name}` must be built, which takes {needed}",
            hint="install that Python, or name a version that has a wheel",
        )
    out = Path(tempfile.mkdtemp(dir=bench.scratch))
    ask = Ask(
        requirements=(),
        only=step.indexes,
        build_constraints=step.build_constraints,
        no_build_isolation=(name,) if python is not None else (),
        environment=step.environment,
    )
    wheel = bench.uv.build(path, out, interpreter, ask=ask, scratch=out, name=name)
    return bench.built.keep(wheel, origin, source)


def _tree_digest(path: Path) -> str:
    """A digest of a file, or of every file of a folder (without Git's own and bytecode)."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    for item in files:
        inside = item.relative_to(path).as_posix() if item != path else item.name
        if ".git/" in f"{inside}/" or "__pycache__/" in inside:
            continue
        digest.update(inside.encode() + b"\0")
        with item.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
