"""Models from their hubs, by the hub's own library in an environment."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from envforge.model.errors import EnvforgeError
from envforge.model.models import HubFile, Listing
from envforge.model.profile import Hub, Model
from envforge.system import process

ORIGIN = "origin"
DISTRIBUTIONS = {Hub.HUGGINGFACE: "huggingface_hub", Hub.MODELSCOPE: "modelscope"}
TOKENS = {Hub.HUGGINGFACE: "HF_TOKEN", Hub.MODELSCOPE: "MODELSCOPE_API_TOKEN"}
ELSEWHERE = frozenset({"hub-unreachable", "model-not-found", "model-not-fetched"})
"""Codes of errors after which another mirror may still serve."""

_UNREACHABLE = frozenset(
    {"ConnectionError", "ConnectError", "Timeout", "TimeoutException", "TimeoutError", "ProxyError", "RetryError"}
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({401, 403})
_SERVER = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """``python``: the environment's; ``variables`` of its processes; ``scratch``: a folder that goes afterwards."""

    python: Path
    variables: Mapping[str, str]
    scratch: Path

    def listing(self, model: Model, source: str) -> Listing:
        """What the hub has. ``source``: a mirror's address, or ``origin``. Raises EnvforgeError, see `_error`."""
        found = self._ask("list", model, source, revision=model.revision)
        files = tuple(
            HubFile(path=each["path"], size=each["size"] or 0, sha256=each["sha256"], git=each["git"])
            for each in found["files"]
        )
        if not files:
            raise _not_fetched(model, f"{model.hub.value} lists no file in the revision `{model.revision}`")
        for path in (file.path for file in files):
            if path.startswith("/") or ".." in path.split("/"):
                raise _not_fetched(model, f"its listing names `{path}`, which would lie outside of it")
        return Listing(commit=found["commit"], files=files)

    def fetch(self, model: Model, source: str, folder: Path, commit: str | None, watch: Callable[[int], None]) -> None:
        """Fetch what is not in ``folder`` yet; ``watch`` gets the process. Raises EnvforgeError, see `_error`."""
        self._ask("fetch", model, source, revision=commit or model.revision, folder=folder, watch=watch)

    def _ask(
        self,
        task: str,
        model: Model,
        source: str,
        *,
        revision: str,
        folder: Path | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> Mapping[str, Any]:
        request = self.scratch / "request.json"
        what = {"task": task, "hub": model.hub.value, "name": model.name, "revision": revision, "folder": str(folder)}
        request.write_text(json.dumps(what), encoding="utf-8")
        # -B: an environment is not written to by who only uses it.
        program = Path(__file__).with_name("hubs_worker.py")
        argv = [str(self.python), "-I", "-B", str(program), str(request)]
        done = process.run(argv, env=self._environment(source), cwd=self.scratch, on_start=watch)
        try:
            answer: Mapping[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        except ValueError:
            answer = {}
        if "result" in answer:
            return dict(answer["result"])
        if "error" not in answer:
            raise _not_fetched(model, f"the library ended with {done.ending()}\n{done.tail()}".strip())
        raise _error(model, answer["error"])

    def _environment(self, source: str) -> Mapping[str, str]:
        """Neither a cache nor a token of the user's is looked for: both would lie below these folders."""
        address = {} if source == ORIGIN else {
            "HF_ENDPOINT": source.rstrip("/"), "MODELSCOPE_ENDPOINT": source.rstrip("/"),
            "MODELSCOPE_DOMAIN": urlsplit(source).netloc,
        }  # fmt: skip
        return {
            **self.variables,
            "HF_HOME": str(self.scratch / "huggingface"),
            "HF_HUB_CACHE": str(self.scratch / "huggingface" / "hub"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",  # plain files, which a mirror has too, and which go on where they stopped
            "HF_HUB_OFFLINE": "0",
            "TRANSFORMERS_OFFLINE": "0",
            "MODELSCOPE_CACHE": str(self.scratch / "modelscope"),
            "MODELSCOPE_CREDENTIALS_PATH": str(self.scratch / "modelscope" / "credentials"),
            "MODELSCOPE_HOME": str(self.scratch / "modelscope"),
            **address,
        }


def _error(model: Model, said: Mapping[str, Any]) -> EnvforgeError:
    """What went wrong, in the user's words: one of the codes that `docs/errors.md` lists for models."""
    kinds, status, cause = frozenset(said["kinds"]), said["status"], str(said["message"])
    library, token = DISTRIBUTIONS[model.hub], TOKENS[model.hub]
    what = f"the model `{model.name}`"
    if said["missing"] is not None and said["missing"].partition(".")[0] in {library, "modelscope_hub"}:
        return EnvforgeError(
            "hub-library-missing",
            f"{what} cannot be fetched: `{library}` is not in the environment",
            hint=f"add `{library}` to a step `install` of the profile, then `envforge update`",
        )
    if said["errno"] in _FULL:
        return disk_full(model, cause)
    gone = {"RevisionNotFoundError", "RepositoryNotFoundError", "NotExistError"} & kinds
    if "GatedRepoError" not in kinds and (gone or status == 404):
        return EnvforgeError(
            "model-not-found",
            f"{what} in the revision `{model.revision}` is not on {model.hub.value}",
            cause=cause,
            hint=f"check its name and revision; of a private model it is said too that there is none: set {token}",
        )
    if "GatedRepoError" in kinds or status in _REFUSED:
        return EnvforgeError(
            "model-unauthorized",
            f"{model.hub.value} does not give out {what}",
            cause=cause,
            hint=f"accept its terms on its page, and set the variable {token} to a token that may read it",
        )
    if kinds & _UNREACHABLE or (status or 0) >= _SERVER:
        return EnvforgeError(
            "hub-unreachable",
            f"{model.hub.value} gives no answer for {what}",
            cause=cause,
            hint=f"check the network, or name a mirror: `mirrors: {{{model.hub.value}: [URL]}}` in the configuration; "
            "what was fetched stays, and the next call goes on from there",
        )
    return _not_fetched(model, cause)


def disk_full(model: Model, cause: str) -> EnvforgeError:
    return EnvforgeError(
        "disk-full",
        f"the disk has no room for the model `{model.name}`",
        cause=cause,
        hint="free some space (`df -h`, `envforge prune`), then run the same command again: it goes on from there",
    )


def _not_fetched(model: Model, cause: str) -> EnvforgeError:
    return EnvforgeError("model-not-fetched", f"the model `{model.name}` cannot be fetched", cause=cause)
