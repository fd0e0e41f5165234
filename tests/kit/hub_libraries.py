"""The libraries of both hubs as kit wheels: the few names that envforge calls, which really fetch, and go on."""

from __future__ import annotations

from .wheels import Wheel

# What both share: an answer of the hub, and a file that is fetched where it stopped. Of `NAME` the hub's own is known.
_FETCHING = """
import json, os, sys, urllib.error, urllib.parse, urllib.request
from pathlib import Path


class HfHubHTTPError(OSError):
    def __init__(self, answer):
        super().__init__("answered %s" % answer.code)
        self.response = self
        self.status_code = answer.code


class GatedRepoError(HfHubHTTPError): pass
class RepositoryNotFoundError(HfHubHTTPError): pass
class RevisionNotFoundError(HfHubHTTPError): pass


KINDS = {
    "GatedRepo": GatedRepoError,
    "RepoNotFound": RepositoryNotFoundError,
    "RevisionNotFound": RevisionNotFoundError,
}


def ask(url, token, start=0):
    headers = {"Authorization": "Bearer " + os.environ[token]} if token in os.environ else {}
    if start:
        headers["Range"] = "bytes=%d-" % start
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers))
    except urllib.error.HTTPError as error:
        raise KINDS.get(error.headers.get("X-Error-Code"), HfHubHTTPError)(error) from None
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from error


def fetch(url, token, target, size, waiting):
    if target.exists():
        return
    waiting.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    start = waiting.stat().st_size if waiting.exists() else 0
    answer = ask(url, token, start)
    with waiting.open("ab") as stream:
        while True:
            chunk = answer.read1(1000)
            if not chunk:
                break
            stream.write(chunk)
            stream.flush()
    waiting.rename(target)
"""

_HUGGINGFACE = """
from types import SimpleNamespace
from ._fetching import *

HOST = os.environ.get("HF_ENDPOINT", "http://127.0.0.1:9")


class HfApi:
    def model_info(self, name, *, revision, files_metadata):
        answer = json.load(ask("%s/api/models/%s/revision/%s?blobs=true" % (HOST, name, revision), "HF_TOKEN"))
        return SimpleNamespace(
            sha=answer["sha"],
            siblings=[
                SimpleNamespace(rfilename=each["rfilename"], size=each["size"], blob_id=each["blobId"], lfs=each["lfs"])
                for each in answer["siblings"]
            ],
        )


def snapshot_download(name, *, revision, local_dir):
    info = HfApi().model_info(name, revision=revision, files_metadata=True)
    for each in info.siblings:
        url = "%s/%s/resolve/%s/%s" % (HOST, name, info.sha, urllib.parse.quote(each.rfilename))
        waiting = Path(local_dir, ".cache/huggingface/download", each.rfilename + ".incomplete")
        fetch(url, "HF_TOKEN", Path(local_dir, each.rfilename), each.size, waiting)
"""

_MODELSCOPE = """
from ._fetching import *

HOST = os.environ.get("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")
TOKEN = "MODELSCOPE_API_TOKEN"


class HubApi:
    def get_model_files(self, name, revision, recursive):
        print("a library says what it likes on stdout")
        url = "%s/api/v1/models/%s/repo/files?Revision=%s&Recursive=True" % (HOST, name, revision)
        return json.load(ask(url, TOKEN))["Data"]["Files"]
"""

_MODELSCOPE_FETCH = """
from .api import HOST, TOKEN, HubApi
from ._fetching import *


def snapshot_download(name, revision, local_dir):
    for each in HubApi().get_model_files(name, revision, True):
        if each["Type"] == "blob":
            about = urllib.parse.urlencode({"Revision": revision, "FilePath": each["Path"]})
            waiting = Path(local_dir, "._____temp", each["Path"])
            fetch("%s/api/v1/models/%s/repo?%s" % (HOST, name, about), TOKEN, Path(local_dir, each["Path"]), 0, waiting)
"""

HUGGINGFACE = Wheel(
    name="huggingface_hub",
    version="0.30.0",
    files={"huggingface_hub/__init__.py": _HUGGINGFACE, "huggingface_hub/_fetching.py": _FETCHING},
)
MODELSCOPE = Wheel(
    name="modelscope",
    version="1.20.0",
    files={
        "modelscope/hub/__init__.py": "",
        "modelscope/hub/_fetching.py": _FETCHING,
        "modelscope/hub/api.py": _MODELSCOPE,
        "modelscope/hub/snapshot_download.py": _MODELSCOPE_FETCH,
    },
)
