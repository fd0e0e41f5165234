"""py-rattler: solves conda packages, installs them into a prefix; always in a process of its own."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envforge.model.bundle import Stored
from envforge.model.errors import EnvforgeError
from envforge.model.repodata import NOARCH, said, spec_name
from envforge.model.state import Distribution, State, package_key, packages, shown
from envforge.system import environ, process
from envforge.system.http import Proxies, without_credentials

from .archives import served
from .channels import Channel
from .origins import ORIGIN, variable_stem

LONGEST_PREFIX = 255
"""Characters: as much room as packages leave for the path of a prefix in their files."""

_SOLVE_LIMIT = 900.0
_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le", "s390x": "linux-s390x"}
_ELSEWHERE = frozenset(
    {
        "channel-not-found",
        "channel-broken",
        "channel-unreachable",
        "channel-unauthorized",
        "package-gone",
        "hash-mismatch",
    }
)
"""Failures after which another mirror may do better."""
_ENDINGS = (".tar.bz2", ".conda")


def subdir(architecture: str) -> str:
    """How conda calls Linux on this architecture."""
    return _SUBDIRS.get(architecture, f"linux-{architecture}")


def architecture(folder: str) -> str | None:
    """The architecture that a subdir is for; None where it is for any."""
    found = {there: here for here, there in _SUBDIRS.items()}
    return None if folder == NOARCH else found.get(folder, folder.removeprefix("linux-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conda:
    """``cache`` holds repodata and packages; ``virtual``: the virtual packages of the host that is built for, as (name,
    version, build); ``platform`` as ``linux-64``; ``roots``: PEM; ``scratch``: a folder of this command's own.
    ``shelf``: sha256 -> archive, of packages that were brought along and so need no network.
    """

    channels: tuple[Channel, ...]
    platform: str
    virtual: tuple[tuple[str, str, str], ...]
    cache: Path
    scratch: Path
    proxies: Proxies
    roots: Path
    offline: bool = False
    copy: bool = False
    shelf: Mapping[str, Stored] = field(default_factory=dict)

    def solve(self, specs: Sequence[str], installed: State = {}, *, what: str) -> State:  # noqa: B006 - never written
        """What holds ``specs`` (match specs), keeping of ``installed`` what can be kept; by `package_key`.

        pip comes with a Python where a channel has it, as conda does it. ``what`` is solved for, in the error.
        Raises EnvforgeError ``unsolvable``, ``channel-...``, ``not-cached``.
        """
        request = {
            "do": "solve",
            "specs": list(specs),
            "locked": [_record(item) for item in packages(installed).values()],
            "virtual": self.virtual,
            "platform": self.platform,
            "with_pip": True,
            "limit": _SOLVE_LIMIT,
        }
        answer = self._ask(request, what=what)
        places = {url.rstrip("/"): name for name, url in answer["channels"].items()}
        names = {spec_name(spec) for spec in specs} | {"pip"}
        return {
            package_key(data["name"]): _package(data, places.get(data["channel"].rstrip("/")), names)
            for data in sorted(answer["records"], key=lambda data: str(data["name"]))
        }

    def install(
        self,
        prefix: Path,
        wanted: State,
        *,
        what: str,
        specs: Sequence[str] = (),
        again: Iterable[str] = (),
        named: Path | None = None,
        log: Path | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """Make ``prefix`` hold exactly the packages of ``wanted``. What is there and is the same stays.

        ``specs``: what was asked for, for the records in conda-meta. ``again``: keys of those that are put there anew
        all the same. ``named``: another path that is written into the files instead of the prefix's own.
        Raises EnvforgeError.
        """
        if len(str(named or prefix)) > LONGEST_PREFIX:
            raise prefix_too_long(named or prefix, tried=prefix.is_relative_to(self.scratch))
        request = {
            "do": "install",
            "prefix": str(prefix),
            "named": str(named) if named is not None else None,
            "records": [_record(item) for item in packages(wanted).values()],
            "requested": list(specs),
            "again": sorted(map(shown, again)),
            "copy": self.copy,
            "brought": [*self.shelf],
        }
        prefix.parent.mkdir(parents=True, exist_ok=True)
        with served(packages(wanted).values(), self.shelf) as shelves:
            absent = self._ask({**request, "shelves": shelves}, what=what, log=log, watch=watch).get("absent", [])
        if absent:
            raise EnvforgeError(
                "not-cached",
                f"{'one package is' if len(absent) == 1 else f'{len(absent)} packages are'} not in the cache, and the "
                "network may not be asked",
                cause="\n".join(f"`{file}`" for file in absent),
                hint="run it once without `--offline`",
            )

    def uncached(self, wanted: State) -> tuple[Distribution, ...]:
        """The packages of ``wanted`` that would have to be fetched."""
        items = tuple(item for item in packages(wanted).values() if item.sha256 not in self.shelf)
        if not items:
            return ()
        answer = self._ask({"do": "cached", "records": [_record(item) for item in items]}, what="the cache")
        return tuple(item for item, there in zip(items, answer["cached"], strict=True) if not there)

    def unmatched(self, questions: Iterable[tuple[Sequence[str], State]], *, what: str) -> list[list[str]]:
        """Of each pair of match specs and a state: the specs that no package of the state is.

        Raises EnvforgeError ``bad-match-spec``.
        """
        asked = [
            {"specs": [*specs], "records": [_record(item) for item in packages(state).values()]}
            for specs, state in questions
        ]
        found: list[list[str]] = self._ask({"do": "unmatched", "questions": asked}, what=what)["unmatched"]
        return found

    def folder(self, item: Distribution) -> Path:
        """Where the cache has a package unpacked, if it has."""
        return self.cache / "pkgs" / _stem(item)

    def evict(self, items: Iterable[Distribution]) -> None:
        """Remove what the cache holds of these packages."""
        for item in items:
            # Of one name from two channels, the second gets a hash behind its name.
            for folder in self.cache.glob(f"pkgs/{_stem(item)}*"):
                if folder.is_dir() and re.fullmatch(re.escape(_stem(item)) + r"(-[0-9a-f]+)?", folder.name):
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)

    # -- the worker --------------------------------------------------------------------------------------------------

    def _ask(
        self,
        request: Mapping[str, Any],
        *,
        what: str,
        log: Path | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Ask each channel, or the first of its mirrors; where that cannot serve, the next. Raises EnvforgeError."""
        tries = max(len(each.sources) for each in self.channels)
        for number in range(tries):
            # rattler by itself goes on to another mirror when one does not answer, but not when it lacks a file.
            mirrors = {each.name: each.sources[min(number, len(each.sources) - 1)] for each in self.channels}
            try:
                return self._ask_there(request, mirrors, what=what, log=log, watch=watch)
            except EnvforgeError as error:
                if error.code not in _ELSEWHERE or number == tries - 1:
                    raise
        raise AssertionError  # a channel has at least one source

    def _ask_there(
        self,
        request: Mapping[str, Any],
        mirrors: Mapping[str, str],
        *,
        what: str,
        log: Path | None,
        watch: Callable[[int], None] | None,
    ) -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        file = folder / "request.json"
        file.touch(0o600)
        known = {each.name: each for each in self.channels}
        whole = {
            **request,
            "cache": str(self.cache),
            "offline": self.offline,
            "channels": {name: each.place for name, each in known.items()},
            "mirrors": {name: source for name, source in mirrors.items() if source != ORIGIN},
            "credentials": {
                url: pair
                for each in self.channels
                for url in (each.place, *each.mirrors)
                if "://" in url and (pair := each.credentials(url)) is not None
            },
            "auth": str(folder / "auth.json"),
        }
        file.write_text(json.dumps(whole), encoding="utf-8")
        worker = Path(__file__).with_name("conda_worker.py")
        try:
            completed = process.run(
                [sys.executable, "-I", str(worker), str(file)], env=self._env(), log=log, on_start=watch
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            answer: dict[str, Any] = json.loads(completed.stdout.strip().rpartition("\n")[2])
        except ValueError:
            answer = {}
        if "result" in answer:
            return dict(answer["result"])
        if "error" not in answer:
            raise EnvforgeError(
                "engine-failed",
                f"{what}: the process that installs conda packages failed: {completed.ending()}",
                cause=completed.tail() or None,
                hint="run the same command again; what takes more memory than there is, is killed by SIGKILL"
                if completed.signal == "SIGKILL"
                else None,
            )
        raise self._failure(what, str(answer["error"]["kind"]), str(answer["error"]["message"]))

    def _env(self) -> dict[str, str]:
        network = {
            "http_proxy": self.proxies.http,
            "https_proxy": self.proxies.https,
            "no_proxy": ",".join((*self.proxies.exempt, "127.0.0.1", "localhost")),
        }
        given = {name: value for name, value in network.items() if value}
        return environ.hermetic({**given, "SSL_CERT_FILE": str(self.roots)})

    def _failure(self, what: str, kind: str, message: str) -> EnvforgeError:
        """What went wrong, in the user's words."""
        words = re.sub(r"(\w+)://[^\s/'\"]*@", r"\1://", message).strip()
        named = ", ".join(f"`{each.name}`" for each in self.channels)
        stem = variable_stem(self.channels[0].name)
        status = re.search(r"HTTP status client error \((\d+)", words)
        code = status[1] if status else ""
        for holds, name, text, hint in (
            ("strict channel priority" in words, "unsolvable", f"{what} cannot be solved with the packages of {named}",
             "a package comes only from the first channel that has its name: put the one first that has what fits"),
            (kind == "unsolvable", "unsolvable", f"{what} cannot be solved with the packages of {named}",
             "loosen one of the specs, or add the channel that has the package"),
            ("no usable repodata cache" in words, "not-cached",
             f"offline, {what} cannot be solved: the cache has no list of the packages of {named}",
             "run it once without `--offline`"),
            ("No space left on device" in words, "disk-full", f"{what} filled the disk",
             "free some space (`df -h`), then run the same command again"),
            ("no eligible writable layers" in words
             or (str(self.cache) in words and re.search("Permission denied|Read-only file system", words) is not None),
             "cache-not-writable", f"{what}: the cache `{self.cache.parent}` cannot be written",
             "give it to your user, or set `cache` in the configuration or ENVFORGE_CACHE"),
            ("hash mismatch" in words.lower(), "hash-mismatch",
             f"{what} got a package whose sha256 is not the one that its channel states",
             "nothing of it was installed; ask the channel's keeper, or another mirror"),
            (kind == "LeavesError" or re.search(r"failed to unpack .*(No such file|outside of)", words), "bad-package",
             f"{what} got a package that cannot be unpacked inside its folder, or would put files elsewhere",
             "nothing of it was installed; ask the channel's keeper"),
            (code in {"401", "403"}, "channel-unauthorized", f"{what}: a channel ({named}) refuses to answer",
             f"set {stem}_USERNAME and {stem}_PASSWORD, or an entry in netrc"),
            ("could not find subdir" in words, "channel-not-found",
             f"{what}: one of the channels {named} is not there",
             f"check its name or URL: a channel has a repodata.json in `noarch` and `{self.platform}`"),
            (code == "404", "package-gone", f"{what}: a channel lists a package and does not have it",
             "wait until the mirror has caught up, or put `origin` at the end of its `mirrors`"),
            ("HTTP status server error" in words, "channel-unreachable",
             f"{what}: a channel ({named}) answers with an error of its own",
             "try again later, or name a mirror of it under `mirrors` in the configuration"),
            (re.search("failed to (parse|extract) repodata", words) is not None,
             "channel-broken", f"{what}: what a channel ({named}) says that it has cannot be read",
             "check its URL: a login page in its place looks so; else tell the channel's keeper"),
            ("error sending request" in words or "Request failed" in words, "channel-unreachable",
             f"{what}: a channel ({named}) gives no answer",
             "check the network and the channel's URL, or name a mirror of it under `mirrors` in the configuration"),
            (kind.startswith("Invalid"), "bad-match-spec", f"{what}: a match spec cannot be read",
             "as in `numpy >=1.26,<2` or `conda-forge::ffmpeg`"),
        ):  # fmt: skip
            if holds:
                cause = words.removeprefix("Cannot solve the request because of: ")
                return EnvforgeError(name, text, cause=cause, hint=hint)
        return EnvforgeError("engine-failed", f"{what} failed", cause=words)


def prefix_too_long(prefix: Path, *, tried: bool = False) -> EnvforgeError:
    """``tried``: it is no environment's, but lies in the cache, where its Python is asked before anything is built."""
    whose = "in the cache where Python is tried" if tried else "of the environment"
    return EnvforgeError(
        "prefix-too-long",
        f"the path {whose} has {len(str(prefix))} characters, and conda packages have room for {LONGEST_PREFIX}",
        cause=str(prefix),
        hint="choose a cache with a shorter path: `cache` in the configuration, or ENVFORGE_CACHE"
        if tried
        else "choose a home with a shorter path (`--home`), or a shorter name (`--name`)",
    )


def _record(item: Distribution) -> Mapping[str, Any]:
    """What the worker installs from; raises EnvforgeError where the records do not hold it."""
    if item.repodata is None:
        raise EnvforgeError(
            "not-restorable",
            f"what the channel said of the conda package `{shown(item.name)}` {item.version} is not recorded",
            hint="`envforge rebuild ENV --fresh` solves the profile anew",
        )
    return said(item)


def _package(data: Mapping[str, Any], channel: str | None, requested: set[str]) -> Distribution:
    kept = {**data, "url": without_credentials(data["url"]), "channel": without_credentials(data["channel"])}
    return Distribution(
        name=package_key(data["name"]),
        version=data["version"],
        build=data["build"],
        index=channel,
        file=data["fn"],
        url=kept["url"],
        sha256=data.get("sha256"),
        size=data.get("size"),
        requested=data["name"] in requested,
        installer="conda",
        repodata=json.dumps(kept, sort_keys=True),
    )


def _stem(item: Distribution) -> str:
    file = item.file or ""
    return next((file.removesuffix(ending) for ending in _ENDINGS if file.endswith(ending)), file)
