"""py-rattler alone, to prove what the kit serves: an environment solved and installed by a child process.

py-rattler may crash while an interpreter ends, its work done: the child leaves without an end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """``packages``: the archives that were chosen. ``error``: kind and message, or None where all went well."""

    packages: set[str]
    error: tuple[str, str] | None


def make(
    root: Path,
    channel: str,
    *specs: str,
    name: str = "env",
    auth: str | None = None,
    subdirs: Sequence[str] = (),
    explicit: Path | None = None,
) -> Made:
    """Make ``root/NAME`` from one channel, nothing of the host's in reach; the cache is in ``root`` too.

    ``auth``: ``user:password``. ``subdirs``: solve for these and install nothing. ``explicit``: a list of packages
    instead of specs.
    """
    order = {
        "root": str(root), "channel": channel, "specs": specs, "name": name, "auth": auth, "subdirs": [*subdirs],
        "explicit": str(explicit) if explicit is not None else None,
    }  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(root)}
    command = [sys.executable, __file__, json.dumps(order)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return Made(packages=set(answer["packages"]), error=tuple(answer["error"]) if answer["error"] else None)


async def _make(order: dict[str, Any]) -> list[str]:
    import rattler
    from rattler.networking import AddHeadersMiddleware

    middlewares = []
    if order["auth"]:
        headers = {"Authorization": f"Basic {base64.b64encode(order['auth'].encode()).decode()}"}
        middlewares.append(AddHeadersMiddleware(lambda _host, _path: headers))
    client = rattler.Client([*middlewares])
    root = Path(order["root"])
    records = await rattler.solve(
        [rattler.Channel(order["channel"])],
        # A text would be read strictly: without `name=version=build`, which is what conda writes.
        _listed(Path(order["explicit"])) if order["explicit"] else [rattler.MatchSpec(each) for each in order["specs"]],
        gateway=rattler.Gateway(cache_dir=root / "cache/repodata", client=client),
        platforms=order["subdirs"] or None,
    )
    if not order["subdirs"]:
        prefix = root / order["name"]
        await rattler.install(records, prefix, cache_dir=root / "cache/pkgs", client=client, show_progress=False)
    return [record.file_name for record in records]


def _listed(path: Path) -> list[Any]:
    """Each address of an explicit list with its hash, as what must be installed."""
    import rattler
    from rattler.explicit_environment import ExplicitEnvironmentSpec

    found = ExplicitEnvironmentSpec.from_path(path)
    assert str(found.platform) == str(rattler.Subdir.current())
    return [rattler.MatchSpec.from_url(entry.url) for entry in found.packages]


def _main(order: dict[str, Any]) -> None:
    packages, error = [], None
    try:
        packages = asyncio.run(_make(order))
    except Exception as failure:  # noqa: BLE001 - whatever py-rattler raises is told
        error = (type(failure).__name__, str(failure))
    print(json.dumps({"packages": packages, "error": error}), flush=True)  # noqa: T201 - it is for the parent
    os._exit(0)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
