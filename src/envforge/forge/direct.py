"""Requirements that name a Git commit, a path or a URL: each becomes a wheel of envforge's own store, built once."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from envforge.engines.built import BuiltWheel
from envforge.engines.uv import Ask
from envforge.model.errors import EnvforgeError
from envforge.model.profile import Step
from envforge.model.state import Origin
from envforge.system import environ, process
from envforge.system.http import Unreachable, without_credentials

from .bench import Bench


def localise(bench: Bench, step: Step, base: Path) -> tuple[str, ...]:
    """The step's requirements with every direct reference replaced by the version that was built from it.

    ``base`` is the profile's folder, from which relative paths count. Raises EnvforgeError.
    """
    lines = []
    for line in step.arguments:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            lines.append(line)
            continue
        if requirement.url is None:
            lines.append(line)
            continue
        own = _wheel(bench, step, requirement, base)
        bench.built.offer(own)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        lines.append(f"{own.name}{extras}=={own.version}{marker}")
    return tuple(lines)


def _wheel(bench: Bench, step: Step, requirement: Requirement, base: Path) -> BuiltWheel:
    url = requirement.url or ""
    if url.startswith("git+"):
        return _from_git(bench, step, requirement.name, url.removeprefix("git+"))
    parts = urlsplit(url)
    if parts.scheme in {"http", "https"}:
        return _from_url(bench, step, requirement.name, url)
    path = Path(unquote(parts.path)) if parts.scheme == "file" else base / url
    if not path.exists():
        raise EnvforgeError(
            "path-missing",
            f"the step `{step.name}` names `{path}`, which does not exist",
            hint="paths count from the profile's folder",
        )
    return _from_path(bench, step, requirement.name, path)


def _from_path(bench: Bench, step: Step, name: str, path: Path) -> BuiltWheel:
    digest = _tree_digest(path)
    source = f"path:{digest}"
    known = bench.built.of_source(source)
    if known is not None:
        return known
    origin = Origin(kind="path", url=path.resolve().as_uri(), sha256=digest)
    if path.suffix == ".whl":
        return bench.built.keep(path, origin, source)
    return build(bench, step, name, str(path), origin=origin, source=source)


def _from_url(bench: Bench, step: Step, name: str, url: str) -> BuiltWheel:
    address, _, fragment = url.partition("#")
    shown = without_credentials(address)
    source = f"url:{url}"
    known = bench.built.of_source(source)
    if known is not None:
        return known
    target = Path(tempfile.mkdtemp(dir=bench.scratch)) / unquote(urlsplit(address).path.rsplit("/", 1)[-1])
    try:
        response = bench.client.stream(address)
    except Unreachable as error:
        raise EnvforgeError("url-unreachable", f"`{shown}` cannot be fetched", cause=str(error)) from error
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for chunk in response.iter_raw():
            digest.update(chunk)
            file.write(chunk)
    response.close()
    if response.status_code != 200:
        raise EnvforgeError("url-unreachable", f"`{shown}` cannot be fetched", cause=f"status {response.status_code}")
    wanted = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
    if wanted and wanted != digest.hexdigest():
        raise EnvforgeError("hash-mismatch", f"`{shown}` has sha256 {digest.hexdigest()}, the profile says {wanted}")
    origin = Origin(kind="url", url=shown, sha256=digest.hexdigest())
    if target.suffix == ".whl":
        return bench.built.keep(target, origin, source)
    return build(bench, step, name, str(target), origin=origin, source=source)


def _from_git(bench: Bench, step: Step, name: str, url: str) -> BuiltWheel:
    address, _, fragment = url.partition("#")
    scheme, _, rest = address.partition("://")
    path, at, wanted = rest.rpartition("@")
    # An @ before the first slash belongs to the user name, not to a revision.
    repository, revision = (f"{scheme}://{path}", wanted) if at and "/" in path else (address, "HEAD")
    folder = fragment.removeprefix("subdirectory=") if fragment.startswith("subdirectory=") else ""
    shown = without_credentials(repository)
    git = shutil.which("git")
    if git is None:
        raise EnvforgeError(
            "git-missing", f"the step `{step.name}` names `{shown}`, and there is no `git`", hint="install git"
        )
    clone = Path(tempfile.mkdtemp(dir=bench.scratch)) / "clone"
    env = environ.hermetic({"GIT_TERMINAL_PROMPT": "0", **_git_proxies(bench)})
    commands = (
        [git, "init", "--quiet", str(clone)],
        [git, "-C", str(clone), "fetch", "--quiet", "--depth", "1", repository, revision],
        [git, "-C", str(clone), "checkout", "--quiet", "FETCH_HEAD"],
        [git, "-C", str(clone), "rev-parse", "HEAD"],
    )
    commit = ""
    for argv in commands:
        completed = process.run(argv, env=env, timeout=1800)
        if not completed.ok:
            raise EnvforgeError(
                "git-failed", f"`{revision}` of `{shown}` cannot be fetched", cause=completed.tail(),
                hint="name a branch, a tag or a full commit that the repository serves",
            )  # fmt: skip
        commit = completed.stdout.strip()
    source = f"git:{shown}@{commit}#{folder}"
    known = bench.built.of_source(source)
    if known is not None:
        return known
    tree = clone / folder
    if not tree.is_dir():
        raise EnvforgeError("git-failed", f"`{shown}` has no folder `{folder}`")
    return build(bench, step, name, str(tree), origin=Origin(kind="git", url=shown, commit=commit), source=source)


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
        raise EnvforgeError(
            "python-missing", f"`{name}` must be built, and Python {bench.facts.version} is not on this machine",
            hint="install that Python, or name a version that has a wheel",
        )  # fmt: skip
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
