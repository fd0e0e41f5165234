"""What a plain user may do, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

_PR_CAPBSET_DROP = 24  # prctl(2)
_CAPABILITIES = 64
_PRCTL = ctypes.CDLL(None).prctl  # before any fork: after it nothing may be loaded


def plainly() -> None:
    """For ``preexec_fn``: the program that is started next is bound by the permissions of files, whoever its user is.

    Root keeps its number and owns what it owns, but may no more than any other owner: nothing needs to be given away.
    """
    if os.geteuid() == 0:
        for number in range(_CAPABILITIES):
            _PRCTL(_PR_CAPBSET_DROP, number, 0, 0, 0)


def need_plain(folder: Path) -> None:
    """Skip the test where the system does not let `plainly` do what it says."""
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    left = subprocess.run(
        ["/bin/sh", "-c", f": > '{closed}/file'"], check=False, capture_output=True, preexec_fn=plainly
    )
    if left.returncode == 0:
        pytest.skip("root cannot be held to permissions here")
