"""Lists or fetches a model by the hub's own library: a program that an environment's Python runs.

It is started by its path in an isolated Python of any version from 3.8 on, with a file of one JSON object, so it
imports nothing of envforge. Its last line on stdout is one JSON object, ``{"result": ...}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional  # noqa: UP035 - also for Python 3.8

Found = Dict[str, Any]  # noqa: UP006 - as above
_CHAIN = 10


def _huggingface_list(request: Found) -> Found:
    hub = importlib.import_module("huggingface_hub")
    info = hub.HfApi().model_info(request["name"], revision=request["revision"], files_metadata=True)
    return {"commit": info.sha, "files": [_sibling(each) for each in info.siblings or ()]}


def _sibling(file: Any) -> Found:
    lfs = getattr(file, "lfs", None)
    sha256 = getattr(lfs, "sha256", None) or (lfs or {}).get("sha256")
    # Of a file in LFS the blob is the pointer to it.
    return {"path": file.rfilename, "size": file.size, "sha256": sha256, "git": None if sha256 else file.blob_id}


def _huggingface_fetch(request: Found) -> Found:
    fetch = importlib.import_module("huggingface_hub").snapshot_download
    # Libraries before 0.23 would only link large files, to a cache that does not last.
    old = "local_dir_use_symlinks" in inspect.signature(fetch).parameters
    more = {"local_dir_use_symlinks": False} if old else {}
    fetch(request["name"], revision=request["revision"], local_dir=request["folder"], **more)
    return {}


def _modelscope_list(request: Found) -> Found:
    try:
        hub = importlib.import_module("modelscope_hub")
    except ImportError:
        api = importlib.import_module("modelscope.hub.api").HubApi()
        found = api.get_model_files(request["name"], revision=request["revision"], recursive=True)
        entries = [(each["Path"], each.get("Size"), each.get("Sha256"), each.get("Type")) for each in found]
    else:
        listed = hub.HubApi().list_repo_files(request["name"], "model", revision=request["revision"], recursive=True)
        entries = [(each.path, each.size, each.sha256, each.type) for each in listed]
    files = [
        {"path": path, "size": size, "sha256": sha256 or None, "git": None}
        for path, size, sha256, kind in entries
        if kind != "tree"
    ]
    return {"commit": None, "files": files}


def _modelscope_fetch(request: Found) -> Found:
    fetch = importlib.import_module("modelscope.hub.snapshot_download").snapshot_download
    fetch(request["name"], revision=request["revision"], local_dir=request["folder"])
    return {}


_TASKS: Dict[str, Callable[[Found], Found]] = {  # noqa: UP006 - also for Python 3.8
    "huggingface list": _huggingface_list,
    "huggingface fetch": _huggingface_fetch,
    "modelscope list": _modelscope_list,
    "modelscope fetch": _modelscope_fetch,
}


def _failure(error: BaseException) -> Found:
    """What the error and those behind it say: names of classes, the status of an answer, the system's number."""
    chain: List[BaseException] = []  # noqa: UP006 - as above
    at: Optional[BaseException] = error  # noqa: UP045 - as above
    while at is not None and len(chain) < _CHAIN:
        chain.append(at)
        at = at.__cause__ or at.__context__
    # Some libraries give the answer to the error as its only argument.
    answers = [getattr(each, "response", None) for each in chain] + [each.args[0] for each in chain if each.args]
    statuses = [getattr(each, "status_code", None) for each in (*answers, *chain)]
    return {
        "kinds": [kind.__name__ for each in chain for kind in type(each).__mro__],
        "status": next((status for status in statuses if isinstance(status, int)), None),
        "errno": next((each.errno for each in chain if isinstance(each, OSError) and each.errno), None),
        "missing": error.name if isinstance(error, ImportError) else None,
        "message": f"{type(error).__name__}: {str(error).strip()}",
    }


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        answer = {"result": _TASKS[request["hub"] + " " + request["task"]](request)}
    except Exception as error:  # noqa: BLE001 - whatever a library raises is told
        answer = {"error": _failure(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
