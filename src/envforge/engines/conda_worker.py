"""Solves and installs conda packages with py-rattler: a program of its own, since that can crash when Python exits.

It is started by its path in an isolated Python with a file of one JSON object, so it imports nothing of envforge. It
prints one JSON object, ``{"result": ...}`` or ``{"error": ...}``, and leaves by ``os._exit``, without taking the
interpreter down.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
import tempfile
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import rattler
import rattler.config
import rattler.package
import rattler.package_cache
from rattler.exceptions import SolverError
from rattler.install import InstallerReporter
from rattler.package import PathsJson

_PLACE = ("fn", "url", "channel")
_HASHES = ("sha256", "md5")


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def fail(error: Exception) -> None:
    say(error={"kind": "unsolvable" if isinstance(error, SolverError) else type(error).__name__, "message": str(error)})


def record(data: dict[str, Any]) -> rattler.RepoDataRecord:
    """What `described` wrote down. ``sha256`` and ``md5`` are not read from an index.json, but given beside it."""
    about = {key: value for key, value in data.items() if key not in {*_PLACE, *_HASHES, "size"}}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(about, file)
        file.flush()
        package = rattler.PackageRecord.from_index_json(
            Path(file.name), data.get("size"), data.get("sha256"), data.get("md5")
        )
    return rattler.RepoDataRecord(package, data["fn"], data["url"], data["channel"])


def described(found: rattler.RepoDataRecord) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(found.to_json())
    for name in _HASHES:
        value = getattr(found, name)
        if value is not None:
            data[name] = value.hex()
    if found.size is not None:
        data["size"] = found.size
    return data


def virtual(name: str, version: str, build: str) -> rattler.GenericVirtualPackage:
    return rattler.GenericVirtualPackage(
        rattler.PackageName(name), rattler.Version(version), rattler.package.BuildString(build)
    )


def configuration(request: dict[str, Any]) -> str:
    """What the network needs, as TOML, in which a JSON text is a text. The user's own keyring is never asked."""
    auth = Path(request["auth"])
    auth.touch(0o600)
    hosts = {
        urlsplit(url).hostname: {"BasicHTTP": {"username": user, "password": password}}
        for url, (user, password) in request["credentials"].items()
    }
    auth.write_text(json.dumps(hosts), encoding="utf-8")
    links = "false" if request.get("copy") else "true"
    lines = [
        f"authentication-override-file = {json.dumps(str(auth))}",
        'tls-root-certs = "system"',
        f"allow-hard-links = {links}",
        f"allow-ref-links = {links}",
        "[mirrors]",
    ]
    mirrors = {rattler.Channel(request["channels"][name]).base_url: each for name, each in request["mirrors"].items()}
    # What was brought along is asked for where it is served, and nowhere else.
    for base, mirror in {**mirrors, **request.get("shelves", {})}.items():
        lines.append(f"{json.dumps(base)} = {json.dumps([mirror])}")
    return "\n".join(lines)


class LeavesError(Exception):
    """A package would put a file outside of the prefix."""

    def __init__(self, package: str, path: str) -> None:
        super().__init__(f"`{package}` holds `{path}`")


class Guard(InstallerReporter):
    """Looks at each package before a file of it is put in place, since rattler follows a path wherever it leads."""

    def __init__(self, pkgs: Path, records: list[dict[str, Any]]) -> None:
        self._pkgs = pkgs
        self._files = {each["name"]: each["fn"] for each in records}

    def on_link_start(self, operation: int, package_name: str) -> int:
        file = self._files[package_name]
        stem = re.escape(re.sub(r"(\.tar\.bz2|\.conda)$", "", file))
        # Of one name from two channels, the second gets a hash behind its name.
        for folder in self._pkgs.iterdir():
            if re.fullmatch(rf"{stem}(-[0-9a-f]+)?", folder.name):
                try:
                    check(folder, file)
                except Exception as error:  # noqa: BLE001 - an error in here would end nothing
                    fail(error)
                    os._exit(0)
        return operation


def check(folder: Path, file: str) -> None:
    """Raise LeavesError where a path of the package that lies unpacked in ``folder`` leads out of it."""
    straight = {"": True}

    def is_straight(parent: str) -> bool:
        if parent not in straight:
            straight[parent] = is_straight(parent.rpartition("/")[0]) and not (folder / parent).is_symlink()
        return straight[parent]

    for entry in PathsJson.from_package_directory_with_deprecated_fallback(folder).paths:
        path = os.fspath(entry.relative_path)
        if leaves(path) or not is_straight(path.rpartition("/")[0]):
            raise LeavesError(file, path)


def leaves(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


class Work:
    """One request. ``cache`` holds ``repodata`` and ``pkgs``."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._cache = Path(request["cache"])
        self._config = rattler.config.Config.from_toml(configuration(request))
        self._client = rattler.Client.from_config(self._config)

    async def solve(self) -> dict[str, Any]:
        asked = self._request
        source = rattler.SourceConfig(cache_action="force-cache-only" if asked["offline"] else "cache-or-fetch")
        gateway = rattler.Gateway(self._cache / "repodata", default_config=source, client=self._client)
        channels = [rattler.Channel(each) for each in asked["channels"].values()]
        platforms = [rattler.Subdir(asked["platform"]), rattler.Subdir("noarch")]
        pip = False
        if asked["with_pip"]:
            names = await gateway.names(channels, platforms)
            pip = any(name.normalized == "pip" for name in names)
        specs = [rattler.MatchSpec(text) for text in asked["specs"]]
        found = await rattler.solve(
            channels,
            specs + _strictly(specs, channels) + ([rattler.MatchSpec("pip")] if pip else []),
            gateway=gateway,
            platforms=platforms,
            locked_packages=[record(each) for each in asked["locked"]],
            virtual_packages=[virtual(*each) for each in asked["virtual"]],
            channel_priority=rattler.ChannelPriority.Strict,
            channel_relations="disabled",
            timeout=timedelta(seconds=asked["limit"]),
        )
        places = {name: each.base_url for name, each in zip(asked["channels"], channels, strict=True)}
        return {"records": [described(each) for each in found], "channels": places}

    async def install(self) -> dict[str, Any]:
        asked = self._request
        pkgs = self._cache / "pkgs"
        for each in asked["records"]:
            if leaves(each.get("python_site_packages_path") or ""):
                raise LeavesError(each["fn"], each["python_site_packages_path"])
        package_cache = rattler.package_cache.PackageCache(pkgs)
        local = {each["url"] for each in asked["records"] if urlsplit(each["url"]).scheme == "file"}
        if asked["offline"] or local:
            index = await package_cache.index()
            needed = [each for each in asked["records"] if each.get("sha256") not in asked["brought"]]
            absent = [each for each in needed if not index.contains_record(record(each))]
            if absent and asked["offline"]:
                return {"absent": [each["fn"] for each in absent]}
            for each in absent:
                if each["url"] in local:
                    insist_on_hash(each)
        await rattler.install(
            [record(each) for each in asked["records"]],
            target_prefix=asked["prefix"],
            cache_dir=pkgs,
            reinstall_packages=set(asked["again"]),
            execute_link_scripts=False,
            reporter=Guard(pkgs, asked["records"]),  # type: ignore[abstract] # what it does not define does nothing
            client=self._client,
            # It wants what a MatchSpec holds: the wrapper is refused by a TypeError.
            requested_specs=[rattler.MatchSpec(text)._match_spec for text in asked["requested"]],  # noqa: SLF001
            alternative_target_prefix=asked["named"],
            config=self._config,
        )
        return {}

    async def cached(self) -> dict[str, Any]:
        index = await rattler.package_cache.PackageCache(self._cache / "pkgs").index()
        return {"cached": [index.contains_record(record(each)) for each in self._request["records"]]}

    async def unmatched(self) -> dict[str, Any]:
        """Of each question the match specs that none of its records is."""
        left = []
        for question in self._request["questions"]:
            records = [record(each) for each in question["records"]]
            specs = [(text, rattler.MatchSpec(text)) for text in question["specs"]]
            left.append([text for text, spec in specs if not any(fits(spec, each) for each in records)])
        return {"unmatched": left}


def _strictly(specs: list[rattler.MatchSpec], channels: list[rattler.Channel]) -> list[rattler.MatchSpec]:
    """The bare names of ``specs``: of what is asked for, rattler else knows no package that does not fit, and so takes
    one from a lower channel though a higher one has the name.
    """
    if len(channels) == 1:
        return []
    return [rattler.MatchSpec(spec.name.normalized) for spec in specs if spec.channel is None]


def insist_on_hash(data: dict[str, Any]) -> None:
    """Hash a package on a disk of this host, which rattler does not. Raises ValueError."""
    place = Path(unquote(urlsplit(data["url"]).path))
    if not data.get("sha256") or not place.is_file():
        return
    with place.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != data["sha256"]:
        message = f"hash mismatch of {data['fn']}: {data['sha256']} is said, {actual} is there"
        raise ValueError(message)


def fits(spec: rattler.MatchSpec, found: rattler.RepoDataRecord) -> bool:
    """`MatchSpec.matches` does not look at the channel."""
    place = spec.channel.base_url if spec.channel is not None else found.channel
    return spec.matches(found) and place.rstrip("/") == found.channel.rstrip("/")


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    warnings.simplefilter("ignore")
    work = Work(request)
    try:
        result = asyncio.run(getattr(work, request["do"])())
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller is told
        fail(error)
    else:
        say(result=result)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
