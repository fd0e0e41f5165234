"""The sha256 of many files on all cores."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

_CHUNK = 1 << 20  # bytes that each thread reads at once
_BATCH = 128  # files for which a thread is asked once, at most
_SHARES = 8  # batches for each thread, at least: none is idle for long at the end


def digests(prefix: Path, paths: Iterable[str], *, workers: int | None = None) -> dict[str, str | None]:
    """Each of ``paths`` (relative to ``prefix``) -> its sha256 (hex); None where it is gone, unreadable or no file.

    A symlink is not followed: its digest is that of ``link:`` and its target, see `of_link`. ``workers``: threads, by
    default one for each core; hashing lets go of the interpreter.
    """
    root = os.path.realpath(prefix)
    wanted = list(paths)
    count = workers or len(os.sched_getaffinity(0))
    # Large files lie side by side (the libraries of one distribution): neighbours go to different batches.
    steps = max(-(-len(wanted) // _BATCH), min(len(wanted), _SHARES * count))
    batches = [wanted[start::steps] for start in range(steps)]
    with ThreadPoolExecutor(max_workers=count) as pool:
        found = pool.map(partial(_batch, root), batches)
        return dict(zip(chain.from_iterable(batches), chain.from_iterable(found), strict=True))


def of_link(target: str) -> str:
    """What stands for the bytes of a symlink."""
    return hashlib.sha256(b"link:" + os.fsencode(target)).hexdigest()


def of_blob(path: Path) -> str:
    """The sha1 by which git, and so a hub, knows a file that is small enough to be read whole. Raises OSError."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _batch(root: str, paths: list[str]) -> list[str | None]:
    buffer = memoryview(bytearray(_CHUNK))
    return [_digest(f"{root}/{path}", buffer) for path in paths]


def _digest(path: str, buffer: memoryview) -> str | None:
    try:
        # A planted pipe must not block, a planted symlink not lead elsewhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _link(path) if error.errno == errno.ELOOP else None
    except ValueError:
        return None  # no file has such a name
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            return None
        # Of a small file the first read is all.
        got = os.readv(descriptor, [buffer])
        digest = hashlib.sha256(buffer[:got])
        while got == _CHUNK:
            got = os.readv(descriptor, [buffer])
            digest.update(buffer[:got])
        return digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _link(path: str) -> str | None:
    try:
        return of_link(os.readlink(path))  # noqa: PTH115 - the text of the link, which pathlib would normalise
    except OSError:
        return None
