"""A command without what its imports take: it is forked from a process that has made them.

It is a process of its own all the same, and a child of the test's: with its own session, folder, variables and
streams. What the interpreter reads as it starts it cannot be given; such a command is started in the usual way.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_MOST = 1 << 20  # bytes of an order
# What envforge loads while it works.
_LATER = (
    "email.parser", "encodings.idna", "filelock", "h11", "httpcore", "httpx", "platformdirs", "rich.console",
    "rich.progress", "rich.table", "sh", "uv", "yaml",
)  # fmt: skip


class Forked(subprocess.Popen[str]):
    """``Popen`` but for the start of the process, which is an order to the one that stands by."""

    def __init__(self, source: str, arguments: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> None:
        self._door = _door(source)
        order = {"arguments": [*arguments], "cwd": str(cwd), "variables": {**variables}}
        super().__init__(
            json.dumps(order), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def _execute_child(self, order: str, *given: Any) -> None:
        # Python's own step between its pipes and its wait: nine arguments more, then both ends of each stream.
        pipes = given[9:15]
        _, _, _, stdout, _, stderr = pipes
        self.pid = self._door.order(order, (stdout, stderr))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class _Door:
    """The way to a process that stands by; it ends when this side is closed."""

    def __init__(self, source: str) -> None:
        import ctypes

        # What it forks is handed to us when the process in between ends.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._one = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), source], env={}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip

    def order(self, order: str, streams: Sequence[int]) -> int:
        """Have a command started and return its process."""
        with self._one:
            socket.send_fds(self._socket, [order.encode()], streams)
            pid, ours = self._socket.recv(_MOST), self._socket.recv(_MOST)
        assert ours, self._child.communicate()[0]
        return int(pid)


@cache
def _door(source: str) -> _Door:
    return _Door(source)


# -- the process that stands by ----------------------------------------------------------------------------------------


def _load() -> None:
    package = importlib.import_module("envforge")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "envforge.")]
    for name in (*_LATER, *names):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    http = importlib.import_module("envforge.system.http")
    roots = http._context()  # they take long to read, and loopback has none
    vars(http)["_context"] = lambda: roots


def _stand_by(door: socket.socket) -> None:
    """Fork at every order; return in what was forked, when it is what was ordered."""
    while True:
        order, streams, _, _ = socket.recv_fds(door, _MOST, 2)
        if not order:
            sys.exit()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid:
                door.send(str(pid).encode())
                os._exit(0)
            _become(json.loads(order), streams)
            return
        os.waitpid(between, 0)
        for stream in streams:
            os.close(stream)
        door.send(b"yours")


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> None:
    os.setsid()
    os.chdir(order["cwd"])
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.update(order["variables"])
    sys.argv[1:] = order["arguments"]


if __name__ == "__main__":
    sys.path[0] = sys.argv.pop()
    with socket.socket(fileno=int(sys.argv.pop())) as _theirs:
        _load()
        gc.freeze()
        _stand_by(_theirs)
    runpy.run_module("envforge", run_name="__main__")
